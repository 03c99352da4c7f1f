"""Interpreters of other packages, as views of a function: found by entry point in the environment
that runs the user's code.

A view is a callable that takes a jaxpr as `jax.make_jaxpr` gives it, and returns text or another
jaxpr. It is registered in its package's metadata, under the name that it is asked for by:

    [project.entry-points."jaxsight.interpreters"]
    flops = "my_package.views:flops"

Finding the names imports nothing; a view's own package is imported when the view is asked for.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable
from typing import Any

GROUP = "jaxsight.interpreters"

View = Callable[[Any], Any]


@functools.cache
def names() -> tuple[str, ...]:
    """The names of all registered views, sorted, as they were when they were first asked for."""
    return tuple(sorted({found.name for found in importlib.metadata.entry_points(group=GROUP)}))


def load(name: str) -> View:
    """A registered view.

    Raises `KeyError` when there is none of that name, and whatever importing its package raises.
    """
    found = importlib.metadata.entry_points(group=GROUP)
    view: View = {each.name: each for each in found}[name].load()
    return view
