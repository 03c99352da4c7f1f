"""Example inputs: arguments to trace a function with, from several sources.

They are read from a docstring, a class, a doctest, annotations, `pyproject.toml`, or calls.
`choice.of` returns the example sets and their problems. All of them are text: this package must
never run code, import JAX or depend on an editor.
"""
