"""Lines broken on purpose, to see which of them the tests notice: `python -m tests.mutation`."""
