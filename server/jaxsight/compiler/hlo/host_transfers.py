"""Describe the transfers between the host and the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jaxsight.compiler.hlo.distributed.collectives import is_async
from jaxsight.compiler.hlo.walk import FREE, Moving, Walk
from jaxsight.hlo.text import Computation, HloModule, Instruction
from jaxsight.wire.chunks import equation_order
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.kernel_work import TO_HOST, HostTransfer

_FARTHEST = 200
"""Number of instructions in which the equations of a transfer are searched in each direction,
chosen: with fewer, a transfer of a large tuple has no line; with more, it may have another's."""


def host_transfers(walked: Walk, kernels: Sequence[Kernel]) -> tuple[HostTransfer, ...]:
    """Return all transfers between the host and the device, in the order of the program."""
    if walked.platform == "cpu":
        return ()
    paths = {
        (unit.computation.name, unit.instruction.name): kernel.equations or kernel.feeds
        for unit, kernel in zip(walked.units, kernels, strict=True)
    }
    return tuple(
        transfer
        for moving in walked.moving
        for transfer in _moved(walked, moving, _Neighbours(moving.unit.computation, paths))
    )


_Paths = Mapping[tuple[str, str], tuple[str, ...]]
"""The equations of kernels, by the names of their computation and instruction."""


class _Neighbours:
    """The readers of each value of a computation, and the equations of its kernels."""

    def __init__(self, computation: Computation, paths: _Paths) -> None:
        self._computation = computation
        self._paths = paths

    def users(self, instruction: Instruction) -> list[Instruction]:
        """Return the instructions that read a result."""
        return self._computation.users.get(instruction.name, [])

    def nearest(self, start: Instruction, direction: str) -> tuple[str, ...]:
        """Return the equations of the nearest kernels that read the result, or wrote the operand.

        Of a transfer to the host those that wrote it are tried first.
        """
        steps = (self.users, self._computation.operands)
        for step in reversed(steps) if direction == TO_HOST else steps:
            waiting, visited = [start], {start.name}
            while waiting and len(visited) < _FARTHEST:
                near = [
                    each
                    for instruction in waiting
                    for each in step(instruction)
                    if each.name not in visited
                ]
                found = {path for each in near for path in self._equations(each)}
                if found:
                    return tuple(sorted(found, key=equation_order))
                visited.update(each.name for each in near)
                waiting = near
        return ()

    def _equations(self, instruction: Instruction) -> tuple[str, ...]:
        if instruction.opcode in FREE:
            return ()
        key = self._computation.name, instruction.name
        return self._paths.get(key) or instruction.equations


def _moved(walked: Walk, moving: Moving, near: _Neighbours) -> Iterator[HostTransfer]:
    unit, start = moving.unit, moving.unit.instruction
    equations = _own(start, near, walked.module)
    overlaps = is_async(start, unit.computation, walked.module)
    for move in moving.moves:
        feeds = () if equations else near.nearest(start, move.direction)
        yield HostTransfer(
            start.name,
            move.direction,
            move.what,
            move.value.text,
            move.value.bytes,
            equations,
            feeds,
            overlaps,
            moving.before if move.is_kernel else -1,
            unit.loops,
            unit.branch,
            walked.runs(unit),
            unit.at_least,
            start.line,
        )


def _own(start: Instruction, near: _Neighbours, module: HloModule) -> tuple[str, ...]:
    """Return the equations of a transfer: those of its start, its end, or the moves within."""
    ends = [each for each in near.users(start) if each.opcode.endswith("-done")]
    body = module.computation(start.calls)
    inside = body.instructions if body is not None else []
    inner = [each for each in inside if each.opcode != "parameter"]
    for source in ([start], ends, inner):
        if paths := {path for each in source for path in each.equations}:
            return tuple(sorted(paths, key=equation_order))
    return ()
