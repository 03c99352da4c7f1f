"""References to arrays that are changed in place (`jax.new_ref`).

This applies to JAX 0.8 to 0.12.

Private API used: `core.Ref` (`core.MutableArray` before 0.8), the `WriteEffect` and `AccumEffect`
of `state.types`, and the input that they name: a variable (`input`), or before 0.10 a position
(`input_index`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
from jax._src import core
from jax._src.state import types

from jaxsight.tracer.compat import jaxprs

_REF: Any = getattr(core, "Ref", None) or vars(core)["MutableArray"]
_WRITES = (types.WriteEffect, types.AccumEffect)


def is_ref(value: Any) -> bool:
    """Return whether a value is a reference to a concrete array."""
    kind = type(value)
    return issubclass(kind, _REF) and not issubclass(kind, jax.core.Tracer)


def written(jaxpr: Any) -> Iterator[int]:
    """Yield the positions of the references that a jaxpr writes to.

    Positions count captured arrays first, then inputs.
    """
    opened = jaxprs.open_jaxpr(jaxpr)
    variables = [*opened.constvars, *opened.invars]
    places = set()
    for effect in opened.effects:
        if isinstance(effect, _WRITES):
            reference: Any = getattr(effect, "input", None)
            if reference is None:
                reference = vars(effect)["input_index"]
            places.add(reference if isinstance(reference, int) else variables.index(reference))
    yield from sorted(places)
