"""Factorisations whose public functions do more than the primitive, unless told not to."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.sourcerizer.exprs import Atom, Expr, call
from jaxsight.sourcerizer.rules.bound import keywords
from jaxsight.sourcerizer.view import LAX, View

_AS_IT_IS = {"symmetrize_input": Atom("False")}


@LAX("cholesky")
def cholesky(view: View) -> Iterator[Expr]:
    yield call("lax.linalg.cholesky", *view.operands, **_AS_IT_IS)


@LAX("eigh")
def eigh(view: View) -> Iterator[Expr]:
    named = keywords(view, "lower", "sort_eigenvalues", "subset_by_index", "implementation")
    shown = {name: item for name, item in named.items() if item != Atom("None")}
    yield call("lax.linalg.eigh", *view.operands, **shown, **_AS_IT_IS)
    reduced = {name: item for name, item in shown.items() if name != "implementation"}
    yield call("lax.linalg.eigh", *view.operands, **reduced, **_AS_IT_IS)
