"""Types of arrays that are divided over the axes of a mesh, as notation has them, and shardings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jaxsight.wire.kernel_graph import Collective, Kernel
from jaxsight.wire.meshes import Chosen, Spec, over
from jaxsight.wire.messages.compiling import Compiled

_RESHARDS = frozenset({"all-gather", "all-to-all", "collective-permute"})
_TYPE = re.compile(r"(\w+)\[([^\[\]]*)\]")
_PLACED = re.compile(r"@(?:\([^()]*\)|\w+)")
"""The axes of a mesh that a dimension is divided over: `8@data`."""


def inserted_reshards(compiled: Compiled) -> Iterator[tuple[Kernel, Collective]]:
    """Yield the collectives that the partitioner inserted, and that move data without computing."""
    for kernel in compiled.graph.kernels:
        collective = kernel.collective
        if collective is not None and collective.inserted and collective.kind in _RESHARDS:
            yield kernel, collective


def shardings_by_name(
    shardings: Iterable[Chosen], end: str, names: Sequence[str]
) -> list[tuple[str, Chosen]]:
    """Return the shardings of parameters or results, each with its name.

    Args:
        shardings: those of a program.
        end: `parameter` or `output`.
        names: those of all parameters, or of all results.
    """
    chosen = {}
    for sharding in shardings:
        what, _, index = sharding.equation.partition(" ")
        if what == end and index.isdecimal():
            chosen[int(index)] = sharding
    return [
        (names[index] if index < len(names) else f"{end} {index}", sharding)
        for index, sharding in sorted(chosen.items())
    ]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A type of arrays: its dtype as it is printed, and its shape."""

    dtype: str
    shape: tuple[int, ...]


def array_type(text: str) -> ArrayType | None:
    """Read a type as jaxprs or HLO print it; `None` where it is of no array."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return None
    sizes = _PLACED.sub("", match[2])
    if not re.fullmatch(r"[\d,]*", sizes):
        return None
    return ArrayType(match[1], tuple(int(size) for size in sizes.split(",") if size))


def shape_of(text: str) -> tuple[int, ...]:
    """Return the shape of a type; empty if it is not of an array."""
    array = array_type(text)
    return array.shape if array is not None else ()


def divided_type(text: str, spec: Spec) -> str:
    """Return `f32[8@data,16]` for a type as HLO prints it, and how it is divided."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return text
    sizes = [
        f"{size}{over(axes)}"
        for size, axes in zip(shape_of(text), (*spec, *[()] * len(shape_of(text))), strict=False)
    ]
    return f"{match[1]}[{','.join(sizes)}]"
