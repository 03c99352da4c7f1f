"""JX457: blocks of a Pallas kernel that do not fit a device's memory, or lie outside of arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.targets.chips.tpus import Tpu
from jaxsight.targets.target import memory_limits
from jaxsight.text.units import size
from jaxsight.wire.program import SMEM, KernelArray, Outside, PallasKernel, Step

RULE = Rule(
    __name__,
    "Blocks of a Pallas kernel do not fit, or lie outside of their array.",
    severity="error",
)

_NAMED = 3
"""The number of arrays that a note names, the largest ones: a line of text."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield blocks outside of arrays, and what takes more memory than a kernel may."""
    for step in view.flow.steps.values():
        if step.kernel is not None:
            found = [*_outside(step, step.kernel), *_too_large(view, step, step.kernel)]
            if found:
                yield _together(found)


def _together(found: Sequence[Violation]) -> Violation:
    """Return what is found at one call, where one finding is reported: the others as notes.

    Errors come first.
    """
    first, *others = sorted(found, key=lambda violation: violation.severity != "")
    notes: list[str] = []
    for other in others:
        more = f" (help: {other.help})" if other.help != first.help else ""
        notes += (f"also, {other.message}{more}", *other.notes)
    return dataclasses.replace(first, notes=tuple(dict.fromkeys((*first.notes, *notes))))


def _outside(step: Step, kernel: PallasKernel) -> Iterator[Violation]:
    for array in kernel.arrays:
        if (outside := array.outside) is None:
            continue
        yield Violation(
            f"block of `{array.name}` starts at {_tuple(outside.start)}, outside of its shape "
            f"{_tuple(array.array)}",
            step.path,
            help="let index maps return indices of blocks, below `pl.cdiv(size, block)`",
            notes=(_position(kernel, array, outside),),
        )


def _position(kernel: PallasKernel, array: KernelArray, outside: Outside) -> str:
    at = f"position {_tuple(outside.position)} of the grid {_tuple(kernel.grid)}"
    return f"the index map returns it at {at}; blocks have shape {_tuple(array.shape)}"


def _too_large(view: ProgramView, step: Step, kernel: PallasKernel) -> Iterator[Violation]:
    if view.target is None or not isinstance(chip := view.target.chip, Tpu):
        return
    for memory, limit in memory_limits(kernel, view.target).items():
        if (used := kernel.used(memory)) <= limit:
            continue
        is_certain = kernel.used_by_itself(memory) > limit
        needs = "takes" if is_certain else "is estimated to take"
        yield Violation(
            f"`{kernel.name}` {needs} {size(used)} of {memory}; the limit on {chip.name} is "
            f"{size(limit)}",
            step.path,
            help=_help(memory, limit, chip),
            notes=tuple(_notes(kernel, memory, is_certain=is_certain)),
            severity="" if is_certain else "warning",
        )


def _help(memory: str, limit: int, chip: Tpu) -> str:
    if memory == SMEM:
        return "leave the array in HBM (`pl.ANY`)"
    if limit < chip.vmem:
        return "choose smaller blocks, or raise `vmem_limit_bytes` of `pltpu.CompilerParams`"
    return "choose smaller blocks"


def _notes(kernel: PallasKernel, memory: str, *, is_certain: bool) -> Iterator[str]:
    arrays = [array for array in kernel.arrays if array.memory == memory]
    arrays.sort(key=lambda array: -array.bytes)
    named = [_described(array) for array in arrays[:_NAMED]]
    rest = f", and {len(arrays) - _NAMED} more" if len(arrays) > _NAMED else ""
    yield f"{', '.join(named)}{rest}, padded to tiles"
    if not is_certain:
        yield "estimated from blocks and scratch; XLA may keep whole arrays in VMEM instead"


def _described(array: KernelArray) -> str:
    times = f"{array.buffers} × " if array.buffers > 1 else ""
    return f"`{array.name}` {times}{array.dtype}{list(array.shape)} = {size(array.bytes)}"


def _tuple(numbers: tuple[int, ...]) -> str:
    return f"({', '.join('?' if each < 0 else str(each) for each in numbers)})"
