"""Example inputs: what a docstring, a class, a doctest, annotations or `pyproject.toml` say to
trace a function with.

All of it is read from text. Nothing here runs code, imports JAX or knows of an editor. `of` gives
what to trace with and what is wrong, `complete` what could be typed, `skeleton` a first section to
start from.
"""

from jaxsight.engine.examples.completion import complete
from jaxsight.engine.examples.problems import Problem
from jaxsight.engine.examples.sets import Examples, ExampleSet
from jaxsight.engine.examples.skeleton import skeleton
from jaxsight.engine.examples.sources import of

__all__ = ["ExampleSet", "Examples", "Problem", "complete", "of", "skeleton"]
