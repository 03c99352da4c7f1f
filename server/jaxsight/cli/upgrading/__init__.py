"""What every function of a project is under two versions of JAX, and what differs.

`examining` traces, compiles and runs the functions with one interpreter, `differences` compares two
such examinations, `report` writes what differs. The inputs are the same on both sides, so what
differs is JAX's doing, or XLA's.
"""
