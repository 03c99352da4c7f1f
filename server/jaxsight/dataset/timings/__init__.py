"""Measured times of rows on this machine's CPU: a table of its own, which no row depends on.

* `runs.py`: in a worker, with the user's JAX;
* `table.py`: asks workers, and adds what they measured to a dataset.
"""
