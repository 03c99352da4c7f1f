"""Kernels, launches and bytes counted by other ways than the product's, to hold against it.

`python -m tests.compiler.counting` compiles every program of `programs.py`, counts by `hlo.py` (a
reader of HLO of its own), on a CPU by a profile of the run, for a GPU that need not be here by the
sequence of thunks that XLA dumps (`thunks.py`), and prints each difference.
"""
