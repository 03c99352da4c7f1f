"""Names of sizes: a function is traced with other sizes, to see how each dimension depends on them.

`samples.py` chooses the sizes, `exploring.py` traces with them, and `naming.py` explains how a
dimension follows from them and writes types with these formulas.
"""
