"""Rare primitives whose public functions take operands in another form than the primitive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxsight.interpreters.compat.staging import opened
from jaxsight.sourcerizer.equations.registry import LAX, STRUCTURES
from jaxsight.sourcerizer.equations.view import View
from jaxsight.sourcerizer.proof.prover import Proved
from jaxsight.sourcerizer.text.exprs import Expr, call, is_identifier, tuple_
from jaxsight.sourcerizer.values import public_names, spelling
from jaxsight.sourcerizer.writing.results import argument_bases, nested_results, sequence
from jaxsight.sourcerizer.writing.scope import Scope


@LAX("polynomial")
def polynomial(view: View) -> Iterator[Expr]:
    x, *coefficients = view.operands
    unroll = view.params.get("unroll")
    options = {} if unroll is None else {"unroll": spelling.value(unroll)}
    yield call("lax.polynomial", x, tuple_(coefficients), **options)


@LAX("layout_constraint")
def layout_constraint(view: View) -> Iterator[Expr]:
    function = public_names.imported("jax.experimental.layout", "with_layout_constraint")
    yield call(function, *view.operands, spelling.layout(view.params["layout"]))


@LAX("precv")
def precv(view: View) -> Iterator[Expr]:
    axes, shape = view.params["axis_name"], spelling.struct(view.params["out_shape"])
    for axis in (axes[0], axes) if len(axes) == 1 else (axes,):
        arguments = shape, spelling.value(axis), spelling.value(view.params["perm"])
        yield call("lax.precv", *view.operands, *arguments)


@LAX("host_local_array_to_global_array", "global_array_to_host_local_array")
def between_hosts(view: View) -> Iterator[Expr]:
    function = public_names.imported("jax.experimental.multihost_utils", view.name)
    arguments = view.params["global_mesh"], view.params["pspec"]
    yield call(function, *view.operands, *map(spelling.value, arguments))


@LAX("todense")
def todense(view: View) -> Iterator[Expr]:
    yield call(public_names.imported("jax.experimental.sparse", "todense"), *view.operands)


@LAX("spsolve")
def spsolve(view: View) -> Iterator[Expr]:
    function = public_names.imported("jax.experimental.sparse.linalg", "spsolve")
    options = {name: spelling.value(view.params[name]) for name in ("tol", "reorder")}
    yield call(function, *view.operands, **options)


@STRUCTURES("xla_metadata_call")
def metadata_of_a_call(scope: Scope, equation: Any) -> Proved | None:
    params = equation.params
    metadata = dict(params["xla_metadata"])
    if params.get("ad_metadata", "same") != "same" or not all(map(is_identifier, metadata)):
        return None
    program = opened(params["jaxpr"])

    def parameters(inner: Scope) -> tuple[str, ...]:
        return tuple(inner.parameters(program.jaxpr.invars, argument_bases(program)))

    function = scope.function("annotated", program, [], parameters, sequence)
    name = public_names.imported("jax.experimental.xla_metadata", "xla_metadata_call")
    named = {key: spelling.value(part) for key, part in metadata.items()}
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    return Proved(
        call(call(name, function, **named), *operands), nested_results(len(equation.outvars))
    )


@STRUCTURES("inspect_sharding")
def inspect_sharding(scope: Scope, equation: Any) -> Proved:
    callback = scope.writer.passed.placeholder(
        equation.params["callback"], "told", "runs on the host"
    )
    operands = [scope.operand(atom) for atom in equation.invars]
    return Proved(call("jax.debug.inspect_array_sharding", *operands, callback=callback), ())
