"""Primitives that are objects, `call_hi_primitive`: functions of NumPy's that JAX keeps whole until it lowers them, from JAX 0.12 on.

Those that `jnp` jits are reached below its `jit` by `__wrapped__`, as any decorated function's inside is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxsight.interpreters.compat import parameters as read
from jaxsight.sourcerizer.exprs import Atom, Expr, Lambda, call, tuple_
from jaxsight.sourcerizer.spelling import text, value
from jaxsight.sourcerizer.view import LAX, View


@LAX("call_hi_primitive")
def high(view: View) -> Iterator[Expr]:
    """By the public function that makes it; mapped where `vmap` made it so."""
    name, given = read.high(view.params)
    match name:
        case "Nonzero":
            yield from _nonzero(view, given)
        case "SearchSorted":
            yield from _search_sorted(view, given)
        case "Ldexp" | "Frexp":
            yield call(f"jnp.{name.lower()}.__wrapped__", *view.operands)
        case "Einsum":
            yield call("jnp.einsum", text(str(given["subscripts"])), *view.operands)
        case _:
            return


def _nonzero(view: View, given: dict[str, Any]) -> Iterator[Expr]:
    """Over the last axes of an array; those before are mapped."""
    array, *filled = view.operands
    rank, axes = view.inputs[0].ndim, tuple(given["axes"])
    options: dict[str, Expr] = {"size": value(given["size"])}
    if axes != tuple(range(rank - len(axes), rank)):
        return
    if filled and rank == len(axes):
        fills = (
            [filled[0], tuple_(filled)]
            if len({str(each) for each in view.literals[1:]}) == 1
            else [tuple_(filled)]
        )
        for fill in fills:
            yield call("jnp.nonzero", array, **options, fill_value=fill)
    elif not filled:
        yield _mapped(rank - len(axes), [array], lambda rows: call("jnp.nonzero", *rows, **options))


def _search_sorted(view: View, given: dict[str, Any]) -> Iterator[Expr]:
    """`jnp.searchsorted`, mapped over what both arrays share."""
    if given["dimension"] != given["batch_dims"]:
        return
    options: dict[str, Expr] = {}
    function = "jnp.searchsorted.__wrapped__"
    if given["side"] != "left":
        options["side"] = text(given["side"])
    if given["method"] != "scan":
        options["method"] = text(given["method"])
    yield _mapped(
        given["batch_dims"],
        view.operands,
        lambda rows: call(function, *rows, **options),
        bare=None if options else Atom(function),
    )


def _mapped(
    times: int,
    operands: Sequence[Expr],
    made: Callable[[Sequence[Expr]], Expr],
    bare: Expr | None = None,
) -> Expr:
    """A call under as many `vmap`s over first axes; `bare` is the function where it is told nothing besides."""
    if not times:
        return made(operands)
    rows = ("row",) if len(operands) == 1 else tuple(f"row{i + 1}" for i in range(len(operands)))
    function = bare if bare is not None else Lambda(rows, made([Atom(row) for row in rows]))
    for _ in range(times):
        function = call("jax.vmap", function)
    return call(function, *operands)
