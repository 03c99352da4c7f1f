"""Reduces the equations of a program that JAX can trace.

Candidates are typed programs with the values of their arguments, so none is sent to the compiler
that is not a valid program.
"""
