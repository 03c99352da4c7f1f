"""The kinds of failure that `--check` names: what a program must do to be interesting.

`base` has the forms of checks in one table. A check has a **demonstration** (`demonstrations`):
the lines that a repro runs as a script, in terms of `main`, `inputs`, `jax` and `np`. They raise an
error if the program does what the check names, and finish otherwise. The reducer executes the same
lines for each candidate. Nothing here imports JAX.
"""
