"""Interpreters of other packages, as views of a function: found by entry point in the environment that runs the user's code.

A view is a callable that takes a jaxpr as `jax.make_jaxpr` gives it, and returns text or another jaxpr. It is registered in its
package's metadata, under the name that it is asked for by:

    [project.entry-points."jaxsight.interpreters"]
    flops = "my_package.views:flops"

Finding the names imports nothing; a view's own package is imported when the view is asked for.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

GROUP = "jaxsight.interpreters"

View = Callable[[Any], Any]


def names() -> tuple[str, ...]:
    """The names of all registered views, sorted."""
    return tuple(sorted({found.name for found in importlib.metadata.entry_points(group=GROUP)}))


def load(name: str) -> View:
    """Raises `LookupError` when there is none of that name, and whatever importing its package raises."""
    found = importlib.metadata.entry_points(group=GROUP, name=name)
    if not found:
        known = ", ".join(names()) or "none is registered"
        raise LookupError(f"no interpreter is called {name} here ({known})")
    view: View = next(iter(found)).load()
    return view
