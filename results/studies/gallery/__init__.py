"""Numbers of studies that no recorded metric holds: one module a study, found by its name.

Each has `numbers(sweep) -> dict[str, float]`, which reads what the sweep recorded and no more.
Its formulas stand in the docstrings. The pictures here are the README's.
"""
