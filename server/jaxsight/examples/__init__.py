"""Example inputs: arguments to trace a function with, from several sources.

They are read from a docstring, a class, a doctest, annotations, `pyproject.toml`, or calls. All of
them are text: nothing here runs code, imports JAX or depends on an editor. `choice.of` returns the
example sets and their problems.
"""
