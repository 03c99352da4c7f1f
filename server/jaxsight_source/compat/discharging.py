"""Programs with mutable arrays (`Ref`) as programs without. Applies to JAX 0.8 to 0.12.

Private API used: `state.discharge.discharge_state`, which takes and returns a closed jaxpr from 0.9
on, and a jaxpr with its constants before.
"""

from __future__ import annotations

from typing import Any, cast

from jax._src.state import discharge
from jax._src.state.types import AbstractRef

from jaxsight_source.compat.inner import walk
from jaxsight_source.compat.staging import Program, opened


def without_refs(closed: object) -> Program:
    """Return the program of a result of `jax.make_jaxpr`, with arrays in place of `Ref`s.

    Reading and writing become operations on arrays. Other programs stay as they are.
    """
    equations = (equation for _, equation in walk(closed))
    made = (var.aval for equation in equations for var in equation.outvars)
    if not any(isinstance(aval, AbstractRef) for aval in made):
        return opened(closed)
    discharge_state = cast(Any, discharge.discharge_state)
    if hasattr(discharge, "discharge_state2"):
        discharge_state = getattr(discharge, "discharge_state2")  # noqa: B009
    return opened(discharge_state(closed))
