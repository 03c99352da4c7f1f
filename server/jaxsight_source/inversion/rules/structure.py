"""Inverses of primitives that move or join elements, from the origin of each element.

An equation that repeats elements, or whose elements are not all in a known result, waits or is
blocked; no element is filled in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.compat.jaxpr_types import Aval, Params
from jaxsight_source.inversion.network import Blocked, Network, Node, Placed, Solution, inverses
from jaxsight_source.inversion.rules.elementwise import unary


def _reshaped(y: jax.Array, aval: Aval, params: Params) -> jax.Array:
    dimensions = params["dimensions"]
    if dimensions is None:
        return lax.reshape(y, aval.shape)
    moved = lax.reshape(y, [aval.shape[index] for index in dimensions])
    return lax.transpose(moved, _inverse_order(dimensions))


def _inverse_order(order: Sequence[int]) -> list[int]:
    return [int(index) for index in np.argsort(order)]


unary(
    {
        "cumsum": lambda y, aval, params: lax.sub(y, _before(y, 0, **params)),
        "reshape": _reshaped,
        "rev": lambda y, aval, params: lax.rev(y, params["dimensions"]),
        "squeeze": lambda y, aval, params: lax.expand_dims(y, params["dimensions"]),
        "transpose": lambda y, aval, params: lax.transpose(
            y, _inverse_order(params["permutation"])
        ),
    }
)


@inverses("broadcast_in_dim")
def _broadcast(placed: Placed, network: Network) -> Solution | Blocked:
    """Take the first of the elements that are the same."""
    (argument, *_), (output,) = placed.inputs, placed.outputs
    limits = [min(size, 1) for size in output.aval.shape]
    for at, size in zip(placed.params["broadcast_dimensions"], argument.aval.shape, strict=True):
        limits[at] = size
    if math.prod(limits) != math.prod(argument.aval.shape):
        return Blocked("has an empty result")
    starts = [0] * len(limits)
    return Solution((output,), (argument,), lambda y: [
        lax.reshape(lax.slice(y, starts, limits), argument.aval.shape)
    ])  # fmt: skip


@inverses("optimization_barrier", "device_put")
def _each(placed: Placed, network: Network) -> Solution | Blocked:
    pairs = [
        (argument, output)
        for argument, output in zip(placed.inputs, placed.outputs, strict=True)
        if network.knows(output) and not network.knows(argument)
    ]
    if not pairs:
        return Blocked("has unknown results where its operands are unknown")
    arguments, results = zip(*pairs, strict=True)
    return Solution(results, arguments, lambda *values: values)


@inverses("concatenate")
def _concatenate(placed: Placed, network: Network) -> Solution | Blocked:
    axis = placed.params["dimension"]
    ends = np.cumsum([node.aval.shape[axis] for node in placed.inputs])
    return Solution(placed.outputs, placed.inputs, lambda y: [
        lax.slice_in_dim(y, int(end) - node.aval.shape[axis], int(end), axis=axis)
        for node, end in zip(placed.inputs, ends, strict=True)
    ])  # fmt: skip


@inverses("stack")
def _stack(placed: Placed, network: Network) -> Solution | Blocked:
    axis = placed.params["axis"]
    return Solution(placed.outputs, placed.inputs, lambda y: [
        lax.index_in_dim(y, index, axis, keepdims=False) for index in range(len(placed.inputs))
    ])  # fmt: skip


@inverses("split", "unstack")
def _split(placed: Placed, network: Network) -> Solution | Blocked:
    axis = placed.params["axis"]
    if not network.knows(*placed.outputs):
        return Blocked("has unknown results")
    join = lax.concatenate if placed.name == "split" else jnp.stack
    return Solution(placed.outputs, placed.inputs, lambda *parts: [join(parts, axis)])


@inverses("pad")
def _pad(placed: Placed, network: Network) -> Solution | Blocked:
    (argument, _), (output,) = placed.inputs, placed.outputs
    config = placed.params["padding_config"]
    if network.knows(argument):
        return Blocked("has an unknown padding value")
    if any(low < 0 or high < 0 for low, high, _ in config):
        return Blocked("has negative padding, which removes elements")
    starts = [low for low, _, _ in config]
    limits = [
        low + max((size - 1) * (interior + 1) + 1, 0) if size else low
        for size, (low, _, interior) in zip(argument.aval.shape, config, strict=True)
    ]
    strides = [interior + 1 for _, _, interior in config]
    return Solution((output,), (argument,), lambda y: [lax.slice(y, starts, limits, strides)])


@inverses("cumprod")
def _cumprod(placed: Placed, network: Network) -> Solution | Blocked:
    if not jnp.issubdtype(placed.outputs[0].aval.dtype, np.inexact):
        return Blocked("of integers may overflow")
    return Solution(
        placed.outputs, placed.inputs, lambda y: [lax.div(y, _before(y, 1, **placed.params))]
    )


def _before(y: jax.Array, first: int, *, axis: int, reverse: bool, **params: object) -> jax.Array:
    """Return the running value before each element."""
    size = y.shape[axis]
    shape = [*y.shape[:axis], min(size, 1), *y.shape[axis + 1 :]]
    edge = lax.full(shape, first, y.dtype)
    if reverse:
        return lax.concatenate([lax.slice_in_dim(y, min(size, 1), size, axis=axis), edge], axis)
    return lax.concatenate([edge, lax.slice_in_dim(y, 0, max(size - 1, 0), axis=axis)], axis)


_PIECES = ("slice", "gather", "dynamic_slice")
_LARGEST = 1 << 24
"""Elements of an array whose positions are tracked, as int32: 64 MiB, and as much again."""


@inverses(*_PIECES)
def _piece(placed: Placed, network: Network) -> Solution | Blocked:
    """Solve for an array by all the pieces that equations take of it, if they cover it."""
    argument = placed.inputs[0]
    if network.knows(argument):
        return Blocked("has unknown indices")
    pieces = [
        reader
        for reader in network.readers(argument)
        if reader.name in _PIECES
        and reader.inputs[0] is argument
        and argument not in reader.inputs[1:]
        and network.knows(*reader.outputs, *reader.inputs[1:])
    ]
    along = _in_line(pieces, argument)
    if along is not None:
        axis, ordered = along
        reads = tuple(piece.outputs[0] for piece in ordered)
        return Solution(reads, (argument,), lambda *parts: [_joined(parts, axis)])
    if math.prod(argument.aval.shape) > _LARGEST:
        return Blocked(f"reads from an array of more than {_LARGEST:,} elements")
    positions = [(piece, _positions(piece, network, argument.aval.shape)) for piece in pieces]
    located = [(piece, where) for piece, where in positions if where is not None]
    if len(located) < len(positions) and not located:
        return Blocked("has indices that are unknown at trace time")
    return _assembled(argument, located)


def _joined(parts: Sequence[jax.Array], axis: int) -> jax.Array:
    return parts[0] if len(parts) == 1 else lax.concatenate(parts, axis)


def _in_line(pieces: Sequence[Placed], argument: Node) -> tuple[int, list[Placed]] | None:
    """Return the axis and the order in which contiguous slices concatenate to the whole array.

    Return None if they do not.
    """
    shape = argument.aval.shape
    spans: list[tuple[int, int, int, Placed]] = []
    for piece in pieces:
        if piece.name != "slice" or any(step != 1 for step in piece.params["strides"] or ()):
            return None
        starts, limits = piece.params["start_indices"], piece.params["limit_indices"]
        cut = [
            index for index, size in enumerate(shape) if (starts[index], limits[index]) != (0, size)
        ]
        if len(cut) > 1:
            return None
        axis = cut[0] if cut else -1
        spans.append((axis, starts[axis] if cut else 0, limits[axis] if cut else 0, piece))
    complete = [piece for axis, _, _, piece in spans if axis == -1]
    if complete:
        return 0, complete[:1]
    axes = {span[0] for span in spans}
    if len(axes) != 1:
        return None
    (axis,) = axes
    at, ordered = 0, []
    for _, start, limit, piece in sorted(spans, key=lambda span: (span[1], -span[2])):
        if start == at and limit > start:
            ordered.append(piece)
            at = limit
    return (axis, ordered) if at == shape[axis] else None


def _positions(piece: Placed, network: Network, shape: Sequence[int]) -> np.ndarray | None:
    """Return the index in the flattened array of each element of a piece; -1 for filled-in ones.

    Return None if the positions depend on unknown values.
    """
    indices = [network.constant(node) for node in piece.inputs[1:]]
    if any(index is None for index in indices):
        return None
    params = dict(piece.params)
    if "fill_value" in params:
        params["fill_value"] = -1
    with jax.ensure_compile_time_eval():
        numbers = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
        moved = piece.equation.primitive.bind(
            jnp.asarray(numbers), *map(jnp.asarray, indices), **params
        )
    return np.asarray(moved)


def _assembled(argument: Node, pieces: Sequence[tuple[Placed, np.ndarray]]) -> Solution | Blocked:
    size = math.prod(argument.aval.shape)
    positions = np.concatenate([np.zeros(0, np.int32), *(where.ravel() for _, where in pieces)])
    source = np.full(size, -1, np.int32)
    inside = positions >= 0
    source[positions[inside]] = np.arange(len(positions), dtype=np.int32)[inside]
    if (source < 0).any():
        missing = int((source < 0).sum())
        return Blocked(f"does not determine {missing:,} of the {size:,} elements of its operand")

    def compute(*parts: jax.Array) -> list[jax.Array]:
        flat = _joined([lax.reshape(part, (part.size,)) for part in parts], 0)
        elements = jnp.take(flat, source, mode="clip", unique_indices=True)
        return [lax.reshape(elements, argument.aval.shape)]

    return Solution(tuple(piece.outputs[0] for piece, _ in pieces), (argument,), compute)
