"""Jaxpr interpreters: programs that walk a jaxpr with a rule for each primitive.

This package runs in the user's Python environment: it imports the standard library, NumPy and JAX
only. `base` has the parts that all jaxpr interpreters share: rules by primitive, and environments.
Built on it are the sourcerizer, whose values are expressions; `forward.Interpreter`, for
interpreters whose values are pytrees of arrays; and `inversion`, which walks a jaxpr in both
directions. `views` finds the interpreters that other packages register. `same` compares two jaxprs.
`compat` holds the private JAX API that this package and the sourcerizer need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxsight_source.inversion.errors import NotInvertible
    from jaxsight_source.inversion.network import Blocked, Placed, Solution, inverses
    from jaxsight_source.inversion.registry import inverse_registry
    from jaxsight_source.inversion.transform import inverse
    from jaxsight_source.jaxprs.base import Environment, Rules
    from jaxsight_source.jaxprs.forward import Interpreter

__all__ = [
    "Blocked",
    "Environment",
    "Interpreter",
    "NotInvertible",
    "Placed",
    "Rules",
    "Solution",
    "inverse",
    "inverse_registry",
    "inverses",
]

_HOMES = {
    "Blocked": "inversion.network",
    "Environment": "base",
    "Interpreter": "forward",
    "NotInvertible": "inversion.errors",
    "Placed": "inversion.network",
    "Rules": "base",
    "Solution": "inversion.network",
    "inverse": "inversion.transform",
    "inverse_registry": "inversion.registry",
    "inverses": "inversion.network",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use.

    `base` and `views` are also imported before JAX is.
    """
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
