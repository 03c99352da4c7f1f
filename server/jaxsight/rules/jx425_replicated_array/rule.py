"""JX425: a large array is whole on every device, though a mesh axis could divide it."""

# Longer than most rules: parameters and results are told apart, and which axis would divide them is
# looked for.

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
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.wire.program import CONSTANT

RULE = Rule(__name__, "A large array is replicated on all devices.", severity="information")
LARGE = 16 * MIB
"""Bytes from which an array is reported: a matrix of 2048×2048 float32 numbers has 16 MiB. A
choice: lower reports biases and scales, which are replicated on purpose, higher misses layers."""
_FLOATS = ("f", "bf", "c")


@dataclass(frozen=True, slots=True)
class _Array:
    """A parameter, an output or a temporary, and how it is divided."""

    value: Value
    """On one device."""
    shape: tuple[int, ...]
    """That of all devices together."""
    spec: Spec
    name: str = ""
    """That of a parameter, if known: `params['w']`."""
    at: str = ""
    """The equation that computes it."""

    @property
    def is_replicated(self) -> bool:
        """Whether every device has all of it, and that is large."""
        return not any(self.spec) and self.value.bytes >= LARGE

    def sizes_over(self, axis: str) -> set[int]:
        """Return the sizes of the dimensions that an axis divides."""
        return {n for n, axes in zip(self.shape, self.spec, strict=False) if axis in axes}


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield at most one finding for parameters, and one for the largest temporary or output."""
    if view.on_target.devices < 2:
        return
    if len({mesh.axes for mesh in view.meshes}) != 1:
        return
    mesh = view.meshes[0]
    if not any(any(chosen.spec) for chosen in view.on_target.shardings):
        return
    parameters = _parameters(view)
    yield from _of_parameters(view, mesh, parameters)
    yield from _of_results(view, mesh, parameters)


def _of_parameters(view: ProgramView, mesh: Mesh, parameters: list[_Array]) -> Iterator[Violation]:
    """Yield a finding on parameters that an axis can divide that is not one of batches.

    Weights are usually replicated over the axis that divides batches.
    """
    unused = _unused_axes(view, mesh)
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
        help=_help(array, axis, mesh),
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


def _of_results(view: ProgramView, mesh: Mesh, parameters: list[_Array]) -> Iterator[Violation]:
    """Yield a finding on the largest temporary or output that is like no parameter.

    Gradients and gathered weights have the elements of a parameter.
    """
    known = {math.prod(each.shape) for each in parameters}
    known |= {view.flow.value(each).elements for each in view.flow.inputs}
    known |= {each.elements for each in view.flow.values if each.origin == CONSTANT}
    found = [
        (array, axis)
        for array in (*_temporaries(view), *_outputs(view))
        if array.is_replicated and math.prod(array.shape) not in known
        if (axis := _best_axis(array, mesh, view.on_target))
    ]
    if not found:
        return
    array, axis = max(found, key=lambda each: each[0].value.bytes)
    others = len({each.at for each, _ in found}) - 1
    notes = [f"its type is {array.value.text} on each device"]
    if others:
        notes.append(
            f"{others} more of this size or less {'are' if others > 1 else 'is'} replicated"
        )
    yield Violation(
        f"array of {size(array.value.bytes)} is replicated on {view.on_target.devices} devices",
        array.at,
        help=_help(array, axis, mesh),
        notes=tuple(notes),
    )


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


def _temporaries(view: ProgramView) -> Iterator[_Array]:
    """Yield the replicated temporaries: on one device they have the global type."""
    chosen = {(each.equation, each.type): each for each in view.on_target.shardings}
    for temporary in view.on_target.graph.temporaries:
        known = chosen.get((temporary.equation, temporary.value.text))
        if known is None or known.unreduced or temporary.equation not in view.flow.steps:
            continue
        yield _Array(temporary.value, shape_of(known.type), known.spec, at=temporary.equation)


def _outputs(view: ProgramView) -> Iterator[_Array]:
    outputs = view.on_target.graph.outputs
    if len(view.flow.outputs) != len(outputs):
        return
    for number, value in enumerate(outputs):
        known = view.shardings.get(f"output {number}")
        maker = view.flow.producer(view.flow.outputs[number])
        if known is None or known.type != value.text or maker is None:
            continue
        yield _Array(value, shape_of(known.type), known.spec, at=maker.path)


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


def _best_axis(array: _Array, mesh: Mesh, compiled: Compiled) -> str:
    """Return the axis that divides a dimension of the same size elsewhere, else the largest."""
    fitting = [(parts, name) for name, parts in mesh.axes if parts > 1]
    fitting = [each for each in fitting if any(n % each[0] == 0 for n in array.shape)]
    for each in compiled.shardings:
        for n, axes in zip(shape_of(each.type), each.spec, strict=False):
            for axis in axes:
                if n in array.shape and any(axis == name for _, name in fitting):
                    return axis
    return max(fitting, default=(0, ""))[1]


def _help(array: _Array, axis: str, mesh: Mesh) -> str:
    parts = dict(mesh.axes)[axis]
    return f"divide it over `{axis}`: {size(array.value.bytes // parts)} on each device"


def _named(array: _Array) -> str:
    return f"`{array.name}`" if array.name else f"a parameter ({array.value.text})"


def _root(array: _Array) -> str:
    """Return the argument that a parameter is a leaf of; empty if it is one itself."""
    name = array.name
    end = next((index for index, sign in enumerate(name) if sign in "[."), len(name))
    return name[:end] if end < len(name) else ""
