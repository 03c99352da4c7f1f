"""Interpreters of jaxprs: programs that walk a jaxpr with a rule for each primitive.

Runs in the user's interpreter: the standard library, NumPy and JAX only. `base` has what all of them share. The sourcerizer is one of
them: its rules give expressions instead of values.
"""
