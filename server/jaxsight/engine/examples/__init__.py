"""Example inputs: arguments to trace a function with, from several sources.

They are read from a docstring, a class, a doctest, annotations or `pyproject.toml`. All of them are
text: nothing here runs code, imports JAX or depends on an editor. `of` returns the example sets and
their problems, `complete` completions, `skeleton` a first section to start from.
"""

from jaxsight.engine.examples.completion import complete
from jaxsight.engine.examples.problems import Problem
from jaxsight.engine.examples.sets import Examples, ExampleSet
from jaxsight.engine.examples.skeleton import skeleton
from jaxsight.engine.examples.sources import of

__all__ = ["ExampleSet", "Examples", "Problem", "complete", "of", "skeleton"]
