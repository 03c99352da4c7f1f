"""Runs programs over several devices on one of them, where `vmap` takes the place of the mesh.

A collective of `shard_map` is one of `vmap` over shards: `lax.psum` adds over the shards of an axis
in both. A sharding says where values are, not which, so that it is ignored.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

import jax
from jax.sharding import Mesh, PartitionSpec


class NotSharded(Exception):
    """A program used nothing that has another form on one device."""


def run(function: Callable[..., object], arguments: tuple[object, ...]) -> list[jax.Array]:
    """Return the flat results of a function on one device.

    Raises:
        NotSharded: the function called neither `jax.shard_map` nor `lax.with_sharding_constraint`.
        Exception: whatever the function raises.
    """
    with _emulated() as calls:
        # A function of its own, as JAX keeps what it traced of the other one.
        results = jax.tree.leaves(jax.jit(lambda *given: function(*given))(*arguments))
    if not calls:
        raise NotSharded
    return results


@contextlib.contextmanager
def _emulated() -> Iterator[list[str]]:
    """Replace functions for several devices, in this process; yields which of them are called."""
    calls: list[str] = []

    def shard_map(
        function: Callable[..., object],
        *,
        mesh: Mesh,
        in_specs: object,
        out_specs: object,
        **_: object,
    ) -> Callable[..., object]:
        calls.append("shard_map")
        return _over_shards(function, mesh, in_specs, out_specs)

    def constrained(value: object, _shardings: object) -> object:
        calls.append("with_sharding_constraint")
        return value

    with (
        mock.patch.object(jax, "shard_map", shard_map),
        mock.patch.object(jax.lax, "with_sharding_constraint", constrained),
    ):
        yield calls


def _over_shards(
    function: Callable[..., object], mesh: Mesh, in_specs: object, out_specs: object
) -> Callable[..., object]:
    """Return a function of whole arrays that maps `function` over their shards."""
    sizes = {str(name): size for name, size in mesh.shape.items()}
    names = tuple(sizes)

    def call(*arguments: object) -> object:
        flat, tree = jax.tree.flatten(arguments)
        specs = _flat_specs(in_specs, arguments)

        def of_leaves(*leaves: object) -> object:
            return function(*jax.tree.unflatten(tree, leaves))

        shards = [_split(array, spec, sizes) for array, spec in zip(flat, specs, strict=True)]
        results = _nested(of_leaves, names, specs)(*shards)
        leaves, structure = jax.tree.flatten(results)
        whole = _flat_specs(out_specs, results)
        joined = [_joined(leaf, spec, names) for leaf, spec in zip(leaves, whole, strict=True)]
        return jax.tree.unflatten(structure, joined)

    return call


def _flat_specs(specs: object, values: object) -> list[PartitionSpec]:
    """Return the specification of each leaf of values, of which `specs` is a prefix."""

    def is_spec(value: object) -> bool:
        return isinstance(value, PartitionSpec)

    def for_leaves(spec: PartitionSpec, part: object) -> object:
        return jax.tree.map(lambda _: spec, part)

    spread = jax.tree.map(for_leaves, specs, values, is_leaf=is_spec)
    flat: list[PartitionSpec] = jax.tree.leaves(spread, is_leaf=is_spec)
    return flat


def _nested(
    function: Callable[..., object], names: Sequence[str], specs: Sequence[PartitionSpec]
) -> Callable[..., object]:
    """Return a function mapped over axes of the mesh, the first one outermost."""
    for name in reversed(names):
        axes = tuple(0 if name in _names(spec) else None for spec in specs)
        if any(axis == 0 for axis in axes):
            function = jax.vmap(function, in_axes=axes, axis_name=name)
        else:
            raise NotImplementedError(f"no argument is split over {name}")
    return function


def _names(spec: PartitionSpec) -> list[str]:
    return [name for part in spec for name in _of(part)]


def _of(part: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the mesh axes of a dimension, the major one first."""
    return () if part is None else (part,) if isinstance(part, str) else tuple(part)


def _split(array: jax.Array, spec: PartitionSpec, sizes: dict[str, int]) -> jax.Array:
    """Return an array with its shards along leading dimensions, in the order of the mesh."""
    shape: list[int] = []
    places: dict[str, int] = {}
    for at, size in enumerate(array.shape):
        parts = _of(spec[at]) if at < len(spec) else ()
        for name in parts:
            places[name] = len(shape)
            shape.append(sizes[name])
        shape.append(size // math.prod(sizes[name] for name in parts))
    front = [places[name] for name in sizes if name in places]
    rest = [at for at in range(len(shape)) if at not in front]
    return array.reshape(shape).transpose(front + rest)


def _joined(array: jax.Array, spec: PartitionSpec, names: Sequence[str]) -> jax.Array:
    """Return a whole array of shards along leading dimensions; equal ones are one."""
    used = _names(spec)
    array = array[tuple(slice(None) if name in used else 0 for name in names)]
    front = [name for name in names if name in used]
    order: list[int] = []
    shape: list[int] = []
    for at, size in enumerate(array.shape[len(front) :]):
        parts = [front.index(name) for name in (_of(spec[at]) if at < len(spec) else ())]
        order += [*parts, len(front) + at]
        shape.append(size * math.prod(array.shape[part] for part in parts))
    return array.transpose(order).reshape(shape)
