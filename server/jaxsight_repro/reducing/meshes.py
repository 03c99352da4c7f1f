"""Makes meshes smaller: fewer devices along an axis, and fewer axes.

A `shard_map` over a mesh without axes is replaced by its body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jaxsight_repro.compat.mesh_equations import mesh_axes, shard_shapes
from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.equations.candidates import Shrunk, cheaper
from jaxsight_repro.reducing.equations.sizes import Retyping
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Equation


def fewer_devices(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Return a candidate whose meshes have as few axes and devices as possible."""

    def tries(candidate: Shrunk) -> Iterator[Shrunk | None]:
        for axes in _smaller(mesh_axes(candidate.equations)):
            for change in _changes(candidate, axes):
                yield change.candidate(candidate)

    return checker.exhausted(candidate, lambda each: cheaper(each, tries(each)))


def _smaller(meshes: Sequence[Mapping[str, int]]) -> Iterator[dict[str, int]]:
    """Yield smaller sizes of axes by name, where 0 removes an axis: of all axes, then of each."""
    largest: dict[str, int] = {}
    for mesh in meshes:
        for name, size in mesh.items():
            largest[name] = max(size, largest.get(name, 0))
    if not largest:
        return
    yield dict.fromkeys(largest, 0)
    for name, size in largest.items():
        if len(largest) > 1:
            yield {name: 0}
        for new in range(1, size):
            yield {name: new}


def _changes(candidate: Shrunk, axes: Mapping[str, int]) -> Iterator[Retyping]:
    """Yield ways to have fewer shards: with smaller arrays, and with larger shards."""
    arrays: dict[int, int] = {}
    shards: dict[int, int] = {}
    for equation in _mapped(candidate.equations):
        for whole, shard, counts in shard_shapes(equation, axes):
            for size, part, (old, new) in zip(whole, shard, counts, strict=True):
                if new < old:
                    arrays[size] = part * new
                    shards[part] = -(-size // new)  # rounded up, which JAX then refuses
    yield Retyping(arrays, mesh_axes=axes, shards={})
    if arrays:
        yield Retyping(mesh_axes=axes, shards=shards)


def _mapped(equations: Sequence[Equation]) -> Iterator[Equation]:
    """Yield each `shard_map` that is not in another."""
    for equation in equations:
        if equation.primitive.name == "shard_map":
            yield equation
        else:
            for part in inner_jaxprs(equation):
                yield from _mapped(part.jaxpr.eqns)
