"""Find the reasons of fusion boundaries.

A kernel's own operation may be one after which XLA does not fuse (a reduction, an FFT, a matmul).
Otherwise, an operation that reads its results may be one before which XLA does not fuse.
Otherwise, its results are needed elsewhere: by the caller, by the next iteration of a loop, or by
several kernels.
"""

from __future__ import annotations

from collections.abc import Iterable

from jaxsight.compiler.hlo.flow import Flow
from jaxsight.compiler.hlo.kinds import Fused, Kind
from jaxsight.compiler.hlo.shapes import arrays
from jaxsight.compiler.hlo.walk import Unit
from jaxsight.wire.kernel_graph import KERNEL, OUTPUT

_OWN = {
    "fft": "fft",
    "sort": "sort",
    "dot": "matmul",
    "scaled-dot": "matmul",
    "ragged-dot": "matmul",
    "convolution": "convolution",
    "custom-call": "custom call",
    "callback": "host callback",
    "collective": "collective",
    "scatter": "scatter",
    "select-and-scatter": "scatter",
    "rng-bit-generator": "random bits",
    "transpose": "layout change",
    "while": "while",
}
"""Operations after which XLA does not fuse, with the name of the reason."""

_REDUCTIONS = frozenset({"reduce", "reduce-window", "reduce-precision-and-reduce"})
_BEFORE = frozenset(
    {
        "fft",
        "sort",
        "matmul",
        "convolution",
        "custom call",
        "host callback",
        "collective",
        "scatter",
        "random bits",
        "while",
    }
)
"""Reasons of a kernel that are also reasons of the kernels before it."""


def reasons(
    units: list[Unit], kinds: list[Kind], fused: Fused, flow: Flow, barriers: Iterable[str]
) -> list[tuple[str, str]]:
    """Return the reason of each kernel, and the equation if it is in another kernel.

    Args:
        barriers: the equations whose results go into an `optimization_barrier`.
    """
    stopped = frozenset(barriers)
    own = [_own(unit, kind, fused) for unit, kind in zip(units, kinds, strict=True)]
    readers: dict[int, set[int]] = {}
    for source, kernel, _ in flow.reads:
        if source.what == KERNEL:
            readers.setdefault(source.index, set()).add(kernel)
    outputs = {source.index for source, _, _ in flow.outputs if source.what == KERNEL}
    found: list[tuple[str, str]] = []
    for index, unit in enumerate(units):
        reading = sorted(readers.get(index, set()) - {index})
        before = [kernel for kernel in reading if own[kernel] in _BEFORE]
        reducing = [kernel for kernel in reading if kinds[kernel].hero in _REDUCTIONS]
        place = ""
        if own[index] and own[index] != "concat/slice":
            reason = own[index]
        elif _stops(unit, fused, stopped):
            reason = "optimization_barrier"
        elif flow.feeds_loop.get(index) or (unit.loops and not reading):
            reason = "while"  # It is for the next iteration, or decides whether there is one.
        elif not reading and index in outputs:
            reason = OUTPUT
        elif before:
            reason = own[before[0]]
            place = units[before[0]].instruction.equation
        elif any(units[kernel].loops != unit.loops for kernel in reading):
            reason = "while"
        elif reducing:
            reason = "reduction"
            place = _reduction(units[reducing[0]], fused)
        elif own[index]:
            reason = own[index]
        elif len(reading) > 1:
            reason = "shared result"
        elif index in outputs:
            reason = OUTPUT
        elif unit.branch >= 0 or index in flow.chooses:
            reason = "conditional"
        else:
            reason = "XLA's choice"
        found.append((reason, place))
    return found


def _reduction(unit: Unit, fused: Fused) -> str:
    """Return the equation of the reduction in a kernel."""
    inside = fused.inside(unit.instruction)
    return next((each.equation for each in inside if each.opcode in _REDUCTIONS), "")


def _own(unit: Unit, kind: Kind, fused: Fused) -> str:
    """Return the reason in the kernel itself, or `""` if there is none."""
    roots = {root.opcode for root in fused.roots(unit.instruction)}
    if roots & _REDUCTIONS:
        return "reduction"
    if kind.word == "copy":
        return "layout change" if kind.hero == "transpose" or _moves(unit) else ""
    if kind.word == "triton" and kind.hero not in _OWN:
        return "reduction" if kind.hero in _REDUCTIONS and roots & _REDUCTIONS else ""
    if kind.word in ("library", "triton", "collective", "sort", "callback", "custom call"):
        return _OWN.get(kind.hero, "custom call")
    if kind.hero in ("dot", "convolution", "fft", "scatter", "sort", "select-and-scatter"):
        return _OWN[kind.hero]
    if kind.hero == "while":
        return "while"
    if "transpose" in roots:
        return "layout change"
    if kind.hero == "rng-bit-generator":
        return "random bits"
    if kind.hero in _REDUCTIONS and unit.instruction.attribute("kind") == "kInput":
        return "reduction"
    if kind.hero == "gather" and "gather" in roots:
        return "gather"
    if "concatenate" in roots or "dynamic-update-slice" in roots:
        return "concat/slice"
    return ""


def _moves(unit: Unit) -> bool:
    """Return whether a copy has a different layout than its operand."""
    before = (
        unit.computation.by_name.get(unit.instruction.operands[0])
        if unit.instruction.operands
        else None
    )
    if before is None:
        return False
    return [value.layout for value in arrays(before.shape)] != [
        value.layout for value in arrays(unit.instruction.shape)
    ]


def _stops(unit: Unit, fused: Fused, stopped: frozenset[str]) -> bool:
    return bool(stopped) and any(root.equation in stopped for root in fused.roots(unit.instruction))
