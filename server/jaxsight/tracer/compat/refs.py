"""References to arrays that are changed in place (`jax.new_ref`).

This applies to JAX 0.8 to 0.12.

Private API used: the `WriteEffect` and `AccumEffect` of `state.types`, and the input that they
name: a variable (`input`), or before 0.10 a position (`input_index`).
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
from jax._src.state import types

from jaxsight_source.compat.staging import open_jaxpr

_WRITES = (types.WriteEffect, types.AccumEffect)


def is_ref(value: object) -> bool:
    """Return whether a value is a reference to a concrete array."""
    kind = type(value)
    return issubclass(kind, jax.ref.Ref) and not issubclass(kind, jax.core.Tracer)


def written(jaxpr: object) -> Iterator[int]:
    """Yield the positions of the references that a jaxpr writes to.

    Positions count captured arrays first, then inputs.
    """
    opened = open_jaxpr(jaxpr)
    variables: list[object] = [*opened.constvars, *opened.invars]
    places = set()
    for effect in opened.effects:
        if isinstance(effect, _WRITES):
            reference: object = getattr(effect, "input", None)
            if reference is None:
                reference = vars(effect)["input_index"]
            places.add(reference if isinstance(reference, int) else variables.index(reference))
    yield from sorted(places)
