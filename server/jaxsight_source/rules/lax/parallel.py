"""Programs over meshes: shard_map, collectives, shardings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import jax

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.parameters import shard_maps
from jaxsight_source.compat.staging import opened
from jaxsight_source.equations.idioms import Window
from jaxsight_source.equations.registry import IDIOMS, LAX, STRUCTURES, View
from jaxsight_source.errors import Unwritable
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import FALSE, call, tuple_
from jaxsight_source.values.spelling import of_first_devices, value
from jaxsight_source.writing.results import nested_results, sequence
from jaxsight_source.writing.scope import Scope


@STRUCTURES("shard_map")
def shard_map(scope: Scope, equation: Equation) -> Proved:
    mapped_program = shard_maps.shard_map(equation.params)
    program = opened(mapped_program.body)
    with shard_maps.inside(mapped_program):
        body = scope.function("shard", program)
    options: dict[str, ast.expr] = {}
    if isinstance(mapped_program.mesh, jax.sharding.Mesh):
        options["mesh"] = scope.once(value(mapped_program.mesh))
    options["in_specs"] = tuple_(value(spec) for spec in mapped_program.in_specs)
    options["out_specs"] = sequence([value(spec) for spec in mapped_program.out_specs])
    if not mapped_program.is_whole:
        options["axis_names"] = value(set(mapped_program.manual))
    if not mapped_program.check_vma:
        options["check_vma"] = FALSE
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    mapped = scope.assigned("mapped", call("jax.shard_map", body, **options))
    return Proved(call(mapped, *operands), nested_results(len(equation.outvars)))


@IDIOMS("broadcast_in_dim|reshape pvary? all_to_all squeeze", plain=True)
def all_to_all_of_whole_axis(window: Window) -> Iterator[ast.expr]:
    """Yield an exchange that removes the axis which it divides and adds another."""
    params = window.find("all_to_all").params
    split, joined = params["split_axis"], params["concat_axis"]
    if params["tiled"] or split == joined:
        return
    x = window.expr(window.equations[0].invars[0])
    axes, groups = params["axis_name"], params["axis_index_groups"]
    options = {} if groups is None else {"axis_index_groups": value([*map(list, groups)])}
    positions = value(split - (split > joined)), value(joined - (joined > split))
    singles = [axes[0]] if isinstance(axes, tuple) and len(axes) == 1 else []
    for axis in (*singles, axes):
        yield call("lax.all_to_all", x, value(axis), *positions, **options)


@LAX("sharding_constraint")
def sharding_constraint(view: View) -> Iterator[ast.expr]:
    sharding = view.params["sharding"]
    free = view.params.get("unconstrained_dims") or ()
    if isinstance(sharding, jax.sharding.NamedSharding):
        spec = list(sharding.spec) + [None] * (view.inputs[0].ndim - len(sharding.spec))
        for dimension in free:
            spec[dimension] = jax.sharding.PartitionSpec.UNCONSTRAINED
        constrained = sharding.spec
        if free:
            constrained = jax.sharding.PartitionSpec(*spec)  # type: ignore[no-untyped-call]
        yield call("lax.with_sharding_constraint", *view.operands, _over(sharding, constrained))
        if isinstance(sharding.mesh, jax.sharding.AbstractMesh):
            yield call("lax.with_sharding_constraint", *view.operands, value(constrained))
    elif sharding is not None:
        yield call("lax.with_sharding_constraint", *view.operands, value(sharding))


@LAX("reshard")
def reshard(view: View) -> Iterator[ast.expr]:
    sharding = view.params["dst_sharding"]
    if isinstance(sharding.mesh, jax.sharding.AbstractMesh):
        yield call("jax.sharding.reshard", *view.operands, value(sharding.spec))
    mesh = view.params.get("concrete_mesh")
    for abstract in (False, True):
        yield call(
            "jax.sharding.reshard", *view.operands, _over(sharding, sharding.spec, mesh, abstract)
        )


def _over(sharding: Any, spec: object, mesh: object = None, abstract: bool = False) -> ast.expr:
    """Return a sharding over a concrete mesh, or over its `abstract` mesh.

    An abstract mesh becomes one of the machine's first devices; raise `Unwritable` if there are too
    few.
    """
    concrete: Any = sharding.mesh if mesh is None else mesh
    if isinstance(concrete, jax.sharding.AbstractMesh):
        concrete = of_first_devices(concrete)
        if concrete is None:
            raise Unwritable(sharding.mesh, "fewer devices are present")
    mesh_expr = value(concrete)
    over = ast.Attribute(mesh_expr, "abstract_mesh") if abstract else mesh_expr
    return call("jax.sharding.NamedSharding", over, value(spec))
