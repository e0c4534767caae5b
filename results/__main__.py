"""`python -m results` in a checkout: the same words as `normbench results`."""

import sys

import harness  # type: ignore[import-not-found]  # noqa: F401  the checkout's code runs
from normbench.__main__ import main

if __name__ == "__main__":
    main(["results", *sys.argv[1:]])
