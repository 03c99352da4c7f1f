"""High-level primitives (`call_hi_primitive`): functions of `jnp`.

From JAX 0.12 on, JAX keeps them whole until it lowers them. For those that `jnp` jits,
`__wrapped__` is the function inside, as for any decorated function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from jaxsight_source.compat import hi_primitives
from jaxsight_source.compat.jaxpr_types import Params
from jaxsight_source.equations.registry import LAX, View
from jaxsight_source.text.exprs import call, lambda_, public, tuple_
from jaxsight_source.values.spelling import value


@LAX("call_hi_primitive")
def high(view: View) -> Iterator[ast.expr]:
    """Yield the public function that creates the primitive, under `vmap` if it was."""
    name, fields = hi_primitives.class_and_params(view.params)
    match name:
        case "Nonzero":
            yield from _nonzero(view, fields)
        case "SearchSorted" if fields["dimension"] == fields["batch_dims"]:
            # Under `vmap` for the axes that both arrays share.
            named = {"side": "left", "method": "scan"}
            options: dict[str, ast.expr] = {
                option: value(fields[option]) for option in named if fields[option] != named[option]
            }
            function = "jnp.searchsorted.__wrapped__"
            yield _mapped(
                fields["batch_dims"],
                view.operands,
                lambda rows: call(function, *rows, **options),
                bare=None if options else public(function),
            )
        case "Ldexp" | "Frexp":
            yield call(f"jnp.{name.lower()}.__wrapped__", *view.operands)
        case "Einsum":
            yield call("jnp.einsum", ast.Constant(str(fields["subscripts"])), *view.operands)
        case _:
            return


def _nonzero(view: View, fields: Params) -> Iterator[ast.expr]:
    """Yield `jnp.nonzero` over the last axes of an array, under `vmap` for the others."""
    array, *filled = view.operands
    rank, axes = view.inputs[0].ndim, tuple(fields["axes"])
    options: dict[str, ast.expr] = {"size": value(fields["size"])}
    if axes != tuple(range(rank - len(axes), rank)):
        return
    if filled and rank == len(axes):
        fills = (
            [filled[0], tuple_(filled)]
            if len({str(literal) for literal in view.literals[1:]}) == 1
            else [tuple_(filled)]
        )
        for fill in fills:
            yield call("jnp.nonzero", array, **options, fill_value=fill)
    elif not filled:
        yield _mapped(rank - len(axes), [array], lambda rows: call("jnp.nonzero", *rows, **options))


def _mapped(
    times: int,
    operands: Sequence[ast.expr],
    apply: Callable[[Sequence[ast.expr]], ast.expr],
    bare: ast.expr | None = None,
) -> ast.expr:
    """Return a call under nested `vmap`s over first axes.

    `bare` is the function itself, if it is called without options.
    """
    if not times:
        return apply(operands)
    rows = ("row",) if len(operands) == 1 else tuple(f"row{i + 1}" for i in range(len(operands)))
    function = bare if bare is not None else lambda_(rows, apply([ast.Name(row) for row in rows]))
    for _ in range(times):
        function = call("jax.vmap", function)
    return call(function, *operands)
