"""The public names of functions, as modules write them."""

from __future__ import annotations

from jaxsight.sourcerizer.text.exprs import Atom
from jaxsight.sourcerizer.text.imports import AT_HAND, SHORT


def path_of(path: str) -> Atom:
    """Return the public name of a function as modules write it."""
    module, _, name = path.rpartition(".")
    if not module:
        return Atom(name)
    if module in SHORT:
        return Atom(f"{SHORT[module]}.{name}")
    return Atom(path, "" if module in AT_HAND or module in ("jax", "np") else module)
