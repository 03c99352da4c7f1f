"""Reads the objects of high-level primitives (`call_hi_primitive`). Applies to JAX 0.12.

Private API used: `HiPrim.params`.
"""

from __future__ import annotations

from jaxsight_source.compat.jaxpr_types import Params


def class_and_params(params: Params) -> tuple[str, Params]:
    """Return the class name and the parameters of a `call_hi_primitive`'s object."""
    primitive = params["_prim"]
    return type(primitive).__name__, {**vars(primitive), **dict(getattr(primitive, "params", {}))}


def params_of_object(value: object) -> Params | None:
    """Return the parameters of a high-level primitive's object, or None for anything else."""
    params = getattr(value, "params", None)
    return dict(params) if hasattr(value, "expand") and isinstance(params, dict) else None
