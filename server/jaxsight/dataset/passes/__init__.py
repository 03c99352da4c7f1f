"""What each pass of XLA makes of rows: a table of its own, which no row depends on.

* `counting.py`: in a worker, compiles StableHLO and counts after each pass;
* `table.py`: asks the worker, and adds what it counted to a dataset.
"""
