"""Finds functions of installed packages with arguments that they are called with.

Runs with the user's Python. A function with its arguments becomes a program that needs JAX alone:
as the sourcerizer writes it, with the arrays among the arguments as its parameters.
"""
