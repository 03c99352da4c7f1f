"""Interpreters of other packages, as views of a function, found by entry point.

The entry points are those of the Python environment that runs the user's code. A view is a callable
that takes a jaxpr, a result of `jax.make_jaxpr`, and returns text or another jaxpr. The metadata of
its package registers it under its name:

    [project.entry-points."jaxsight.interpreters"]
    flops = "my_package.views:flops"

Listing the names imports nothing; a view's package is imported when the view is loaded.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable

GROUP = "jaxsight.interpreters"

View = Callable[[object], object]


@functools.cache
def names() -> tuple[str, ...]:
    """Return the sorted names of all registered views, as they were at the first call."""
    return tuple(sorted({point.name for point in importlib.metadata.entry_points(group=GROUP)}))


def load(name: str) -> View:
    """Return a registered view.

    Raise `KeyError` if there is none of that name, and whatever importing its package raises.
    """
    points = importlib.metadata.entry_points(group=GROUP)
    view: View = {point.name: point for point in points}[name].load()
    return view
