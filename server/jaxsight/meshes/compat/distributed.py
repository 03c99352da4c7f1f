"""What a jaxpr says about devices: its meshes, and the equations that communicate.

This applies to JAX 0.8 to 0.12. Only public classes are used, but the names and parameters of
primitives are no API of JAX's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import jax

from jaxsight.meshes.compat.meshes import AnyMesh, is_mesh
from jaxsight_source.compat.inner import walk
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import open_jaxpr

_COMMUNICATING = frozenset(
    {"psum", "psum2", "psum_invariant", "pmax", "pmin", "all_gather", "all_gather_invariant",
     "reduce_scatter", "all_to_all", "ppermute", "pbroadcast", "pgather", "ragged_all_to_all",
     "all_gather_reduced", "unreduced_psum", "unreduced_reduce_scatter", "psend", "precv",
     "collective_permute"}
)  # fmt: skip
"""Collectives of `jax.lax`."""


def communicates(equation: Equation) -> bool:
    """Return whether an equation is a collective.

    A constraint such as `reshard` is none: how it is met is the partitioner's decision.
    """
    return equation.primitive.name in _COMMUNICATING


def meshes(values: Iterable[object]) -> Iterator[AnyMesh]:
    """Yield the meshes with axes among some objects, and those of shardings."""
    for value in values:
        mesh = value.mesh if isinstance(value, jax.sharding.NamedSharding) else value
        if is_mesh(mesh):
            yield mesh


def meshes_of(jaxpr: object) -> Iterator[AnyMesh]:
    """Yield the meshes that the equations of a jaxpr name."""
    for _, equation in walk(jaxpr):
        for value in equation.params.values():
            yield from meshes(value if isinstance(value, tuple | list) else (value,))


def mesh_sizes(jaxpr: object) -> set[int]:
    """Return the numbers of devices of the meshes that a jaxpr and its inputs name."""
    inputs = (getattr(var.aval, "sharding", None) for var in open_jaxpr(jaxpr).invars)
    return {mesh.size for mesh in itertools.chain(meshes(inputs), meshes_of(jaxpr))}


def places_on_several(jaxpr: object) -> bool:
    """Return whether an equation of a jaxpr puts arrays on several devices, or constrains them."""
    for _, equation in walk(jaxpr):
        targets = equation.params.get("devices", (equation.params.get("sharding"),))
        for target in targets if isinstance(targets, tuple | list) else ():
            if isinstance(target, jax.sharding.Sharding) and target.num_devices > 1:
                return True
    return False
