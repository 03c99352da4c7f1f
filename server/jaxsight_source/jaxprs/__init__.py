"""Jaxpr interpreters: programs that walk a jaxpr with a rule for each primitive.

`base` has the parts that all jaxpr interpreters share: rules by primitive, and environments. Built
on it are the sourcerizer, whose values are expressions; `forward.Interpreter`, for interpreters
whose values are pytrees of arrays; and `inversion`, which walks a jaxpr in both directions. `views`
finds the interpreters that other packages register. `same` compares two jaxprs.
"""
