"""JX425: a large array is whole on every device, though a mesh axis could divide it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.meshes.divided import shape_of
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import MIB, size
from jaxsight.wire.kernel_graph import Value
from jaxsight.wire.meshes import Mesh, Spec

RULE = Rule(__name__, "A large array is replicated on all devices.", severity="information")
LARGE = 16 * MIB
"""Bytes from which an array is reported: a matrix of 2048×2048 float32 numbers has 16 MiB. A
choice: lower reports biases and scales, which are replicated on purpose, higher misses layers."""
_FLOATS = ("f", "bf", "c")


@dataclass(frozen=True, slots=True)
class _Array:
    """A parameter, and how it is divided."""

    value: Value
    """On one device."""
    shape: tuple[int, ...]
    """That of all devices together."""
    spec: Spec
    name: str = ""
    """`params['w']`, if it is known."""

    @property
    def is_replicated(self) -> bool:
        """Whether every device has all of it, and that is large."""
        return not any(self.spec) and self.value.bytes >= LARGE

    def sizes_over(self, axis: str) -> set[int]:
        """Return the sizes of the dimensions that an axis divides."""
        return {n for n, axes in zip(self.shape, self.spec, strict=False) if axis in axes}


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield a finding on parameters that an axis can divide that is not one of batches.

    Weights are usually replicated over the axis that divides batches.
    """
    if view.on_target.devices < 2:
        return
    if len({mesh.axes for mesh in view.meshes}) != 1:
        return
    mesh = view.meshes[0]
    if not any(any(chosen.spec) for chosen in view.on_target.shardings):
        return
    parameters, unused = _parameters(view), _unused_axes(view, mesh)
    found: list[tuple[_Array, str, str]] = []
    for array in parameters:
        if not array.is_replicated or not array.value.text.startswith(_FLOATS):
            continue
        for axis, parts in mesh.axes:
            if parts < 2 or all(n % parts for n in array.shape):
                continue
            if axis in unused:
                found.append((array, axis, f"nothing is divided over {axis}"))
                break
            if (donor := _donor(array, axis, parameters)) is not None:
                found.append((array, axis, f"{axis} divides {_named(donor)}"))
                break
    if not found:
        return
    array, axis, why = max(found, key=lambda each: each[0].value.bytes)
    total = sum(each.value.bytes for each, _, _ in found)
    rest = f" and {len(found) - 1} more" if len(found) > 1 else ""
    yield Violation(
        f"{_named(array)}{rest}: {size(total)} {'are' if rest else 'is'} replicated on "
        f"{view.on_target.devices} devices",
        help=f"divide it over `{axis}`: "
        f"{size(array.value.bytes // dict(mesh.axes)[axis])} on each device",
        notes=(f"{_named(array)} is {array.value.text}; {why}",),
    )


def _donor(array: _Array, axis: str, parameters: list[_Array]) -> _Array | None:
    """Return another large parameter like an array, with a dimension of its sizes on an axis.

    Batches, too, are large arrays, and their size may be that of a dimension by chance. So the two
    are leaves of one argument, or the dimension is not the first.
    """
    for other in parameters:
        if not other.value.text.startswith(_FLOATS) or not len(other.shape) == len(array.shape) > 1:
            continue
        if math.prod(other.shape) * array.value.bytes < LARGE * math.prod(array.shape):
            continue
        if other.sizes_over(axis).isdisjoint(array.shape):
            continue
        is_first = bool(other.spec) and axis in other.spec[0]
        if _root(array) == _root(other) != "" or (not is_first and len(array.shape) == 2):
            return other
    return None


def _parameters(view: ProgramView) -> list[_Array]:
    """Return the parameters whose shardings are known; names only if they are certain."""
    arrays = [
        (number, value, known)
        for number, value in enumerate(view.on_target.graph.parameters)
        if (known := view.shardings.get(f"parameter {number}")) is not None
    ]
    numbers: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, _, known in arrays:
        numbers[shape_of(known.type)].append(number)
    names: dict[int, str] = {}
    for shape, having in numbers.items():
        inputs = [view.flow.value(each) for each in view.flow.inputs]
        own = [each.said for each in inputs if each.shape == shape]
        if len(own) == len(having):
            names.update(zip(having, own, strict=True))
    return [
        _Array(value, shape_of(known.type), known.spec, names.get(number, ""))
        for number, value, known in arrays
    ]


def _unused_axes(view: ProgramView, mesh: Mesh) -> set[str]:
    """Return the axes that divide nothing; none if `shard_map` may use them."""
    if any(step.primitive == "shard_map" for step in view.flow.steps.values()):
        return set()
    divided = (
        axis
        for each in view.on_target.shardings
        for spec in (each.spec, *(operand.spec for operand in each.operands))
        for axes in spec
        for axis in axes
    )
    moved = (
        axis
        for kernel in view.on_target.graph.kernels
        if kernel.collective is not None
        for axis in kernel.collective.axes
    )
    return {name for name, _ in mesh.axes} - {*divided, *moved}


def _named(array: _Array) -> str:
    return f"`{array.name}`" if array.name else f"a parameter ({array.value.text})"


def _root(array: _Array) -> str:
    """Return the argument that a parameter is a leaf of; empty if it is one itself."""
    name = array.name
    end = next((index for index, sign in enumerate(name) if sign in "[."), len(name))
    return name[:end] if end < len(name) else ""
