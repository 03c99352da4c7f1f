"""Gather, scatter and dynamic slices."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.sourcerizer.equations.fallback import keywords
from jaxsight.sourcerizer.equations.registry import LAX
from jaxsight.sourcerizer.equations.view import View
from jaxsight.sourcerizer.text.exprs import Atom, Expr, call, tuple_
from jaxsight.sourcerizer.values.spelling import value

_UNSIGNED = {"allow_negative_indices": Atom("False")}
"""Makes `dynamic_slice` use indices unchanged; by default it counts negative ones from the end,
which adds equations.
"""


@LAX("dynamic_slice")
def dynamic_slice(view: View) -> Iterator[Expr]:
    x, *starts = view.operands
    sizes = value(view.params["slice_sizes"])
    yield call("lax.dynamic_slice", x, tuple_(starts), sizes)
    yield call("lax.dynamic_slice", x, tuple_(starts), sizes, **_UNSIGNED)


@LAX("dynamic_update_slice")
def dynamic_update_slice(view: View) -> Iterator[Expr]:
    x, update, *starts = view.operands
    yield call("lax.dynamic_update_slice", x, update, tuple_(starts))
    yield call("lax.dynamic_update_slice", x, update, tuple_(starts), **_UNSIGNED)


_FLAGS = ("indices_are_sorted", "unique_indices")


def flags(view: View) -> dict[str, Expr]:
    """Return the promises about a gather's or scatter's indices, as keyword arguments."""
    return {name: Atom("True") for name in _FLAGS if view.params.get(name)}


@LAX("gather")
def gather(view: View) -> Iterator[Expr]:
    named = keywords(view, "dimension_numbers", "slice_sizes")
    named |= flags(view) | keywords(view, "mode")
    if view.params.get("fill_value") is not None:
        named |= keywords(view, "fill_value")
    yield call("lax.gather", *view.operands, **named)


@LAX("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def scatter(view: View) -> Iterator[Expr]:
    named = keywords(view, "dimension_numbers") | flags(view) | keywords(view, "mode")
    yield call(f"lax.{view.name.replace('-', '_')}", *view.operands, **named)
