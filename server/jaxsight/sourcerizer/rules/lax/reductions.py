"""Reductions, windows, sorts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from jaxsight.interpreters.compat import dtypes
from jaxsight.sourcerizer.equations.fallback import keywords
from jaxsight.sourcerizer.equations.registry import LAX
from jaxsight.sourcerizer.equations.view import View
from jaxsight.sourcerizer.text.exprs import Atom, Expr, call, tuple_
from jaxsight.sourcerizer.values import scalars
from jaxsight.sourcerizer.values.spelling import value


@LAX("argmax", "argmin")
def argument(view: View) -> Iterator[Expr]:
    (axis,) = view.params["axes"]
    dtype = scalars.dtype(view.params["index_dtype"])
    yield call(f"lax.{view.name}", *view.operands, value(axis), dtype)


@LAX("sort")
def sort(view: View) -> Iterator[Expr]:
    operand = view.operands[0] if len(view.operands) == 1 else tuple_(view.operands)
    named = keywords(view, "dimension")
    if not view.params["is_stable"]:
        named |= keywords(view, "is_stable")
    if view.params["num_keys"] != 1:
        named |= keywords(view, "num_keys")
    yield call("lax.sort", operand, **named)
    yield call("lax.sort", tuple_(view.operands), **named)


@LAX("approx_top_k")
def approx_top_k(view: View) -> Iterator[Expr]:
    named = keywords(
        view, "reduction_dimension", "recall_target",
        "reduction_input_size_override", "aggregate_to_topk",
    )  # fmt: skip
    function = "lax.approx_max_k" if view.params["is_max_k"] else "lax.approx_min_k"
    yield call(function, *view.operands, value(view.params["k"]), **named)


_MONOIDS = {
    "reduce_window_sum": "lax.add",
    "reduce_window_max": "lax.max",
    "reduce_window_min": "lax.min",
}


def _identity(view: View) -> Iterator[Expr]:
    dtype = view.inputs[0].dtype
    sum_ = view.name == "reduce_window_sum"
    low = view.name == "reduce_window_max"
    if dtype == np.bool_:
        yield Atom("False" if sum_ or low else "True")
    elif dtypes.is_subtype(dtype, np.integer):
        info: Any = getattr(jax.numpy, "iinfo")(dtype)  # noqa: B009 - it has no types
        yield scalars.typed(np.asarray(0 if sum_ else info.min if low else info.max, dtype))
    else:
        bound = 0.0 if sum_ else -np.inf if low else np.inf
        yield scalars.number(bound)
        yield scalars.typed(np.asarray(bound).astype(dtype))


@LAX(*_MONOIDS)
def reduce_window(view: View) -> Iterator[Expr]:
    (x,) = view.operands
    named = keywords(view, "window_dimensions", "window_strides", "padding")
    for name in ("base_dilation", "window_dilation"):
        if any(step != 1 for step in view.params.get(name) or ()):
            named |= keywords(view, name)
    for identity in _identity(view):
        yield call("lax.reduce_window", x, identity, Atom(_MONOIDS[view.name]), **named)
