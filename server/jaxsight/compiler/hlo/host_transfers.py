"""Describe the transfers between the host and the device, with those of callbacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jaxsight.compiler.hlo.distributed.collectives import is_async
from jaxsight.compiler.hlo.fused import Fused
from jaxsight.compiler.hlo.walk import FREE, Moving, Unit, Walk
from jaxsight.hlo.shapes import arrays
from jaxsight.hlo.text import Computation, HloModule, Instruction
from jaxsight.wire.chunks import equation_order
from jaxsight.wire.kernel_graph import CALLBACK, Kernel
from jaxsight.wire.kernel_work import TO_DEVICE, TO_HOST, HostTransfer, Transferred

_NAMES: Mapping[str, Transferred] = {
    "infeed": "infeed",
    "outfeed": "outfeed",
    "send": "send",
    "recv": "receive",
}
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
    found: list[tuple[int, HostTransfer]] = []
    for moving in walked.moving:
        found += [(moving.before, transfer) for transfer in _moved(walked, moving, paths)]
    for index, kernel in enumerate(kernels):
        if kernel.kind == CALLBACK:
            found += [(index, transfer) for transfer in _called_back(walked, index, kernel)]
    return tuple(transfer for _, transfer in sorted(found, key=lambda each: each[0]))


_Paths = Mapping[tuple[str, str], tuple[str, ...]]
"""The equations of kernels, by the names of their computation and instruction."""


def _nearest(
    start: Instruction, computation: Computation, paths: _Paths, direction: str
) -> tuple[str, ...]:
    """Return the equations of the nearest kernels that read the result, or wrote the operand.

    Of a transfer to the host those that wrote it are tried first.
    """

    def users(instruction: Instruction) -> list[Instruction]:
        return computation.users.get(instruction.name, [])

    steps = (computation.operands, users) if direction == TO_HOST else (users, computation.operands)
    for step in steps:
        waiting, visited = [start], {start.name}
        while waiting and len(visited) < _FARTHEST:
            near = [each for at in waiting for each in step(at) if each.name not in visited]
            found = {
                path
                for each in near
                if each.opcode not in FREE
                for path in paths.get((computation.name, each.name)) or each.equations
            }
            if found:
                return tuple(sorted(found, key=equation_order))
            visited.update(each.name for each in near)
            waiting = near
    return ()


def _moved(walked: Walk, moving: Moving, paths: _Paths) -> Iterator[HostTransfer]:
    unit, start = moving.unit, moving.unit.instruction
    equations = _own(start, unit.computation, walked.module)
    overlaps = is_async(start, unit.computation, walked.module)
    for move in moving.moves:
        feeds = () if equations else _nearest(start, unit.computation, paths, move.direction)
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
            *_context(walked, unit),
        )


def _called_back(walked: Walk, index: int, kernel: Kernel) -> Iterator[HostTransfer]:
    """Yield what a callback, an infeed or a send moves: its operands to the host, its results back.

    On GPUs, callbacks copy both (`xla_ffi_python_gpu_callback` in jaxlib, `py_client_gpu.cc`).
    """
    unit = walked.units[index]
    call, lookup = unit.instruction, unit.computation.by_name.get
    if (body := Fused(call, walked.module).body) is not None:
        called = (each for each in body.instructions if each.opcode == "custom-call")
        call, lookup = next(called, call), body.by_name.get
    opcode, is_call = call.opcode, call.opcode == "custom-call"
    comes_in = opcode in ("infeed", "recv")
    operands = map(lookup, call.operands if is_call else call.operands[: not comes_in])
    sent = [value for each in operands if each is not None for value in arrays(each.shape)]
    received = arrays(call.shape) if is_call else kernel.outputs if comes_in else ()
    for direction, values in ((TO_HOST, sent), (TO_DEVICE, received)):
        if amount := sum(value.bytes for value in values):
            yield HostTransfer(
                kernel.name,
                direction,
                _NAMES.get(opcode, CALLBACK),
                ", ".join(value.text for value in values),
                amount,
                kernel.equations,
                kernel.feeds,
                False,
                index,
                *_context(walked, unit),
            )


def _context(walked: Walk, unit: Unit) -> tuple[tuple[int, ...], int, int, int, int]:
    """Return the loops and the branch around an instruction, its runs, and its line."""
    return unit.loops, unit.branch, walked.runs(unit), unit.at_least, unit.instruction.line


def _own(start: Instruction, computation: Computation, module: HloModule) -> tuple[str, ...]:
    """Return the equations of a transfer: those of its start, its end, or the moves within."""
    ends = [u for u in computation.users.get(start.name, ()) if u.opcode.endswith("-done")]
    body = module.computation(start.calls)
    inside = body.instructions if body is not None else []
    inner = [each for each in inside if each.opcode != "parameter"]
    for source in ([start], ends, inner):
        if paths := {path for each in source for path in each.equations}:
            return tuple(sorted(paths, key=equation_order))
    return ()
