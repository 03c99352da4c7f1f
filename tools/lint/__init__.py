"""Checks of texts, names and tables: `python -m tools.lint [CHECK…]` prints what offends.

A check is a module of this package with a function `offenders`, which takes a `Checkout` and yields
`Offender`s. It imports no JAX, starts no process and traces nothing.
"""
