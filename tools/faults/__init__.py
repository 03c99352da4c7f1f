"""Measures what the gate misses: one-line faults, tried against the tests that execute their line.

`python -m tools.faults record`, `merge`, `draw` and `try`, in this order; `--help` describes each.
"""
