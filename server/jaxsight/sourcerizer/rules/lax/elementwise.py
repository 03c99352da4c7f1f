"""Elementwise primitives whose public function has another name or order than the primitive."""

from __future__ import annotations

from collections.abc import Iterator

from jax.ad_checkpoint import checkpoint_name

from jaxsight.sourcerizer.equations.registry import LAX
from jaxsight.sourcerizer.equations.view import View
from jaxsight.sourcerizer.text.exprs import Atom, Attribute, Expr, call
from jaxsight.sourcerizer.values import scalars, spelling
from jaxsight.sourcerizer.writing.contexts import metadata

_OTHER_NAMES = {
    "and": "lax.bitwise_and",
    "or": "lax.bitwise_or",
    "xor": "lax.bitwise_xor",
    "not": "lax.bitwise_not",
    "regularized_incomplete_beta": "lax.betainc",
}


@LAX(*_OTHER_NAMES)
def renamed(view: View) -> Iterator[Expr]:
    yield call(_OTHER_NAMES[view.name], *view.operands)


_PYTHON_TYPES = {"f": "float", "i": "int", "c": "complex", "b": "bool"}


@LAX("convert_element_type")
def convert(view: View) -> Iterator[Expr]:
    (x,) = view.operands
    new = view.params["new_dtype"]
    if view.params.get("weak_type") and (python := _PYTHON_TYPES.get(scalars.kind(new))):
        yield call("lax.convert_element_type", x, Atom(python))
    yield call("lax.convert_element_type", x, scalars.dtype(new))
    if view.params.get("sharding") is not None:  # left by transposition
        sharding = Attribute(call("jax.typeof", x), "sharding")
        yield call(Attribute(x, "astype"), scalars.dtype(new), device=sharding)
        yield call("jnp.asarray", x, scalars.dtype(new), device=sharding)


@LAX("bitcast_convert_type")
def bitcast(view: View) -> Iterator[Expr]:
    yield call("lax.bitcast_convert_type", *view.operands, scalars.dtype(view.params["new_dtype"]))


@LAX("integer_pow")
def integer_pow(view: View) -> Iterator[Expr]:
    yield call("lax.integer_pow", *view.operands, spelling.value(view.params["y"]))


@LAX("copy", "copy_p")
def copy(view: View) -> Iterator[Expr]:
    yield call("jnp.copy", *view.operands)
    yield call("jnp.array", *view.operands, copy=Atom("True"))


@LAX("name")
def name(view: View) -> Iterator[Expr]:
    function = spelling.function(checkpoint_name)
    yield call(function, *view.operands, scalars.text(view.params["name"]))


@LAX("xla_metadata_value")
def metadata_of_a_value(view: View) -> Iterator[Expr]:
    yield metadata([*view.operands], dict(view.params["xla_metadata_kvs"]))
