"""Example inputs: arguments to trace a function with, from several sources.

They are read from a docstring, a class, a doctest, annotations, `pyproject.toml`, or calls. All of
them are text: nothing here runs code, imports JAX or depends on an editor. `of` returns the example
sets and their problems.
"""

from jaxsight.examples.choice import of
from jaxsight.examples.problems import Problem
from jaxsight.examples.sets import Examples, ExampleSet, OutsideSet

__all__ = ["ExampleSet", "Examples", "OutsideSet", "Problem", "of"]
