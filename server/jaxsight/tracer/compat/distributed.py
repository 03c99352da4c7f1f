"""What a jaxpr says about devices: its meshes, and the equations that communicate.

This applies to JAX 0.8 to 0.12. Only public classes are used, but the names and parameters of
primitives are no API of JAX's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import jax

from jaxsight.interpreters.compat.jaxpr_types import Equation
from jaxsight.tracer.compat import jaxprs
from jaxsight.wire.meshes import Mesh

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


def meshes_of(jaxpr: object, shardings: Iterable[object]) -> Iterator[Mesh]:
    """Yield the meshes of shardings, and of those in the equations of a jaxpr."""
    for sharding in shardings:
        if isinstance(sharding, jax.sharding.NamedSharding):
            yield from _mesh(sharding.mesh)
    for equation in jaxprs.open_jaxpr(jaxpr).eqns:
        for value in equation.params.values():
            for part in value if isinstance(value, tuple | list) else (value,):
                if isinstance(part, jax.sharding.NamedSharding):
                    yield from _mesh(part.mesh)
                elif isinstance(part, jax.sharding.Mesh | jax.sharding.AbstractMesh):
                    yield from _mesh(part)
        for inner in jaxprs.inner(equation) if equation.params else ():
            yield from meshes_of(inner.jaxpr, ())


def _mesh(mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh) -> Iterator[Mesh]:
    """Yield a mesh, unless it has no axes."""
    axes = tuple((str(name), int(size)) for name, size in mesh.shape.items())
    if axes:
        yield Mesh(axes)
