"""Programs over meshes: shard_map, collectives, shardings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from jaxsight.interpreters.compat.staging import opened
from jaxsight.sourcerizer.compat import meshes
from jaxsight.sourcerizer.equations.registry import LAX, STRUCTURES
from jaxsight.sourcerizer.equations.view import View
from jaxsight.sourcerizer.errors import Unwritable
from jaxsight.sourcerizer.proof.prover import Proved
from jaxsight.sourcerizer.text.exprs import Atom, Attribute, Expr, call, tuple_
from jaxsight.sourcerizer.text.statements import Assign
from jaxsight.sourcerizer.values import scalars
from jaxsight.sourcerizer.values.spelling import value
from jaxsight.sourcerizer.writing.results import argument_bases, nested_results, sequence
from jaxsight.sourcerizer.writing.scope import Scope


@STRUCTURES("shard_map")
def shard_map(scope: Scope, equation: Any) -> Proved:
    found = meshes.shard_map(equation.params)
    program = opened(found.body)
    bases = argument_bases(program)

    def parameters(inner: Scope) -> tuple[str, ...]:
        return tuple(inner.parameters(program.jaxpr.invars, bases))

    with meshes.inside(found):
        body = scope.function("shard", program, [], parameters, sequence)
    options: dict[str, Expr] = {}
    if isinstance(found.mesh, jax.sharding.Mesh):
        options["mesh"] = scope.writer.constants.named(found.mesh, "_MESH", value(found.mesh))
    options["in_specs"] = tuple_(value(spec) for spec in found.in_specs)
    options["out_specs"] = sequence([value(spec) for spec in found.out_specs])
    if not found.is_whole:
        options["axis_names"] = value(set(found.manual))
    if not found.check_vma:
        options["check_vma"] = Atom("False")
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    mapped = scope.names.fresh("mapped")
    scope.body.append(Assign(mapped, call("jax.shard_map", body, **options)))
    return Proved(call(mapped, *operands), nested_results(len(equation.outvars)))


def _axes(view: View) -> Iterator[Expr]:
    """Yield the axes of a collective: the name of one, or a tuple."""
    given = view.params.get("axes", view.params.get("axis_name"))
    if isinstance(given, tuple):
        if len(given) == 1:
            yield value(given[0])
        yield value(given)
    else:
        yield value(given)


def _groups(view: View) -> dict[str, Expr]:
    groups = view.params.get("axis_index_groups")
    return {} if groups is None else {"axis_index_groups": value([list(part) for part in groups])}


_SUMS = {"psum": "psum", "psum_invariant": "psum", "pmax": "pmax", "pmin": "pmin"}


@LAX(*_SUMS)
def reduce_over_axes(view: View) -> Iterator[Expr]:
    x = view.operands[0] if len(view.operands) == 1 else tuple_(view.operands)
    for axes in _axes(view):
        yield call(f"lax.{_SUMS[view.name]}", x, axes, **_groups(view))


@LAX("pvary")
def pvary(view: View) -> Iterator[Expr]:
    for axes in _axes(view):
        yield call("lax.pcast", *view.operands, axes, to=Atom('"varying"'))
        yield call("lax.pvary", *view.operands, axes)


@LAX("reduced_vary_cast", "vary_unreduced_cast", "preduced", "unreduced_psum")
def cast_variance(view: View) -> Iterator[Expr]:
    for axes in _axes(view):
        for to in ("varying", "unreduced", "reduced"):
            yield call("lax.pcast", *view.operands, axes, to=scalars.text(to))


@LAX("ppermute")
def ppermute(view: View) -> Iterator[Expr]:
    for axes in _axes(view):
        yield call("lax.ppermute", *view.operands, axes, value([*view.params["perm"]]))


@LAX("pbroadcast")
def pbroadcast(view: View) -> Iterator[Expr]:
    for axes in _axes(view):
        yield call("lax.pbroadcast", *view.operands, axes, value(view.params["source"]))


def _flag(view: View, name: str) -> dict[str, Expr]:
    return {name: Atom("True")} if view.params.get(name) else {}


@LAX("all_gather", "all_gather_invariant", "all_gather_reduced")
def all_gather(view: View) -> Iterator[Expr]:
    where = view.params["all_gather_dimension"]
    options = {**_groups(view), **({"axis": value(where)} if where else {}), **_flag(view, "tiled")}
    for axes in _axes(view):
        yield call("lax.all_gather", *view.operands, axes, **options)
        for to in ("reduced", "invariant", "invarying"):
            yield call("lax.all_gather", *view.operands, axes, **options, to=scalars.text(to))


@LAX("reduce_scatter", "unreduced_reduce_scatter")
def reduce_scatter(view: View) -> Iterator[Expr]:
    where = view.params["scatter_dimension"]
    options = {"scatter_dimension": value(where)} if where else {}
    for axes in _axes(view):
        yield call(
            "lax.psum_scatter",
            *view.operands,
            axes,
            **options,
            **_groups(view),
            **_flag(view, "tiled"),
        )


@LAX("all_to_all")
def all_to_all(view: View) -> Iterator[Expr]:
    split, joined = value(view.params["split_axis"]), value(view.params["concat_axis"])
    for axes in _axes(view):
        yield call(
            "lax.all_to_all",
            *view.operands,
            axes,
            split,
            joined,
            **_groups(view),
            **_flag(view, "tiled"),
        )


@LAX("ragged_all_to_all")
def ragged_all_to_all(view: View) -> Iterator[Expr]:
    for axes in _axes(view):
        yield call("lax.ragged_all_to_all", *view.operands, axis_name=axes, **_groups(view))


@LAX("axis_index")
def axis_index(view: View) -> Iterator[Expr]:
    yield call("lax.axis_index", value(view.params["axis_name"]))


@LAX("sharding_constraint")
def sharding_constraint(view: View) -> Iterator[Expr]:
    given = view.params["sharding"]
    free = view.params.get("unconstrained_dims") or ()
    if isinstance(given, jax.sharding.NamedSharding):
        spec = list(given.spec) + [None] * (view.inputs[0].ndim - len(given.spec))
        for dimension in free:
            spec[dimension] = jax.sharding.PartitionSpec.UNCONSTRAINED
        asked = given.spec
        if free:
            asked = jax.sharding.PartitionSpec(*spec)  # type: ignore[no-untyped-call]
        yield call("lax.with_sharding_constraint", *view.operands, _over(given, asked))
        if isinstance(given.mesh, jax.sharding.AbstractMesh):
            yield call("lax.with_sharding_constraint", *view.operands, value(asked))
    elif given is not None:
        yield call("lax.with_sharding_constraint", *view.operands, value(given))


@LAX("reshard")
def reshard(view: View) -> Iterator[Expr]:
    given = view.params["dst_sharding"]
    if isinstance(given.mesh, jax.sharding.AbstractMesh):
        yield call("jax.sharding.reshard", *view.operands, value(given.spec))
    mesh = view.params.get("concrete_mesh")
    for abstract in (False, True):
        yield call("jax.sharding.reshard", *view.operands, _over(given, given.spec, mesh, abstract))


def _over(given: Any, spec: Any, mesh: Any = None, abstract: bool = False) -> Expr:
    """Return a sharding over a concrete mesh, or over its `abstract` mesh.

    An abstract mesh becomes one of the machine's first devices; raise `Unwritable` if there are too
    few.
    """
    found = given.mesh if mesh is None else mesh
    if isinstance(found, jax.sharding.AbstractMesh):
        devices = jax.devices()[: found.size]
        if len(devices) < found.size:
            raise Unwritable(found, "fewer devices are present")
        import numpy as np

        array = np.array(devices).reshape(found.axis_sizes)
        found = jax.sharding.Mesh(array, found.axis_names, axis_types=found.axis_types)
    made = value(found)
    over = Attribute(made, "abstract_mesh") if abstract else made
    return call("jax.sharding.NamedSharding", over, value(spec))
