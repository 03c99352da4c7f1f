"""Factorisations whose public functions do more than the primitive, unless options prevent it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jaxsight.interpreters.compat.staging import opened
from jaxsight.sourcerizer.equations.fallback import by_name, keywords
from jaxsight.sourcerizer.equations.idioms import Window
from jaxsight.sourcerizer.equations.registry import IDIOMS, LAX
from jaxsight.sourcerizer.equations.view import View
from jaxsight.sourcerizer.text.exprs import Atom, Expr, call

_AS_IT_IS = {"symmetrize_input": Atom("False")}


@LAX("cholesky")
def cholesky(view: View) -> Iterator[Expr]:
    yield call("lax.linalg.cholesky", *view.operands, **_AS_IT_IS)


_TRIANGLE = "iota add? iota ge broadcast_in_dim select_n"
"""The equations that extract the lower triangle, which public functions add to the primitive."""


@IDIOMS(
    f"cholesky {_TRIANGLE}",
    f"transpose add div cholesky {_TRIANGLE}",
    f"real? transpose imag? neg? complex? add div cholesky {_TRIANGLE}",
    plain=True,
)
def lower_cholesky(window: Window) -> Iterator[Expr]:
    first = window.equations[0]
    operand = window.expr(first.invars[0])
    options = _AS_IT_IS if first.primitive.name == "cholesky" else {}
    yield call("lax.linalg.cholesky", operand, **options)


@LAX("jit", "pjit")
def jitted_by_jax(view: View) -> Iterator[Expr]:
    """Yield the call of a public function that is jitted itself.

    A function of `lax` holds the one equation of its name, after conversions. `geqrf` has no public
    function but `jnp.linalg.qr(mode="raw")`.
    """
    if view.params["name"] == "qr":
        yield call("jnp.linalg.qr", *view.operands, mode=Atom('"raw"'))
    equations = opened(view.params["jaxpr"]).jaxpr.eqns
    if not equations or equations[-1].primitive.name != view.params["name"]:
        return
    *before, inside = equations
    if all(equation.primitive.name == "convert_element_type" for equation in before):
        yield from by_name(replace(view, primitive=inside.primitive, params=inside.params))


@LAX("eigh")
def eigh(view: View) -> Iterator[Expr]:
    named = keywords(view, "lower", "sort_eigenvalues", "subset_by_index", "implementation")
    shown = {name: option for name, option in named.items() if option != Atom("None")}
    yield call("lax.linalg.eigh", *view.operands, **shown, **_AS_IT_IS)
    reduced = {name: option for name, option in shown.items() if name != "implementation"}
    yield call("lax.linalg.eigh", *view.operands, **reduced, **_AS_IT_IS)
