"""Find the reasons of fusion boundaries.

A kernel's own operation may be one after which XLA does not fuse (a reduction, an FFT, a matmul).
Otherwise, an operation that reads its results may be one before which XLA does not fuse.
Otherwise, its results are needed elsewhere: by the caller, by the next iteration of a loop, or by
several kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jaxsight.compiler.hlo.flow import ArrayReads
from jaxsight.compiler.hlo.fused import Fused
from jaxsight.compiler.hlo.kinds import Kind
from jaxsight.compiler.hlo.walk import Unit
from jaxsight.hlo.shapes import arrays
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
"""Operations after which XLA does not fuse (`IsProducerConsumerFusible` in
`xla/service/gpu/gpu_fusible.cc`), with the name of the reason."""

_NEVER_FUSED = frozenset(
    {"dot", "convolution", "fft", "scatter", "sort", "select-and-scatter", "while"}
)
_REDUCTIONS = frozenset({"reduce", "reduce-window", "reduce-precision-and-reduce"})
_BEFORE = frozenset(_OWN.values()) - {"layout change"}
"""Reasons of a kernel that are also reasons of the kernels before it."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """What a kernel's own instructions say of the fusion boundaries around it."""

    reason: str
    """The reason in the kernel itself, or `""` if there is none."""
    results: tuple[str, ...]
    """The equations of its results, one for each."""
    is_reduction: bool
    """Whether its characteristic operation is a reduction."""
    reduction: str
    """The equation of its first reduction."""


def boundary(unit: Unit, kind: Kind, fused: Fused) -> Boundary:
    """Return what the instructions of a kernel say of the fusion boundaries around it."""
    reduction = ""
    if not _REDUCTIONS.isdisjoint(fused.opcodes):
        reduction = next(inner for inner in fused.inside if inner.opcode in _REDUCTIONS).equation
    roots = fused.roots()
    return Boundary(
        _own_reason(unit, kind, {root.opcode for root in roots}),
        tuple([root.equation for root in roots]),
        kind.hero in _REDUCTIONS,
        reduction,
    )


def reasons(
    units: list[Unit], boundaries: list[Boundary], flow: ArrayReads, barriers: Iterable[str]
) -> list[tuple[str, str]]:
    """Return the reason of each kernel, and the equation if it is in another kernel.

    Args:
        barriers: the equations whose results go into an `optimization_barrier`.
    """
    behind = frozenset(barriers)
    readers_of: dict[int, set[int]] = {}
    for source, kernel, _ in flow.reads:
        if source.what == KERNEL:
            readers_of.setdefault(source.number, set()).add(kernel)
    outputs = {source.number for source, _, _ in flow.outputs if source.what == KERNEL}

    def reason(index: int, unit: Unit, own: Boundary) -> tuple[str, str]:
        readers = sorted(readers_of.get(index, set()) - {index})
        if own.reason and own.reason != "concat/slice":
            return own.reason, ""
        if not behind.isdisjoint(own.results):
            return "optimization_barrier", ""
        if flow.feeds_loop.get(index) or (unit.loops and not readers):
            return "while", ""  # It is for the next iteration, or decides whether there is one.
        if index in outputs and not readers:
            return OUTPUT, ""
        for kernel in readers:
            if boundaries[kernel].reason in _BEFORE:
                return boundaries[kernel].reason, units[kernel].instruction.equation
        if any(units[kernel].loops != unit.loops for kernel in readers):
            return "while", ""
        for kernel in readers:
            if boundaries[kernel].is_reduction:
                return "reduction", boundaries[kernel].reduction
        if own.reason:
            return own.reason, ""
        if len(readers) > 1:
            return "shared result", ""
        if index in outputs:
            return OUTPUT, ""
        is_conditional = unit.branch >= 0 or index in flow.chooses
        return "conditional" if is_conditional else "XLA's choice", ""

    return list(map(reason, range(len(units)), units, boundaries))


def _own_reason(unit: Unit, kind: Kind, roots: set[str]) -> str:
    """Return the reason in the kernel itself, or `""`; `roots` compute its results."""
    if roots & _REDUCTIONS:
        return "reduction"
    if kind.word == "copy":
        return "layout change" if kind.hero == "transpose" or _changes_layout(unit) else ""
    if kind.word == "triton" and kind.hero not in _OWN:
        return "reduction" if kind.hero in _REDUCTIONS and roots & _REDUCTIONS else ""
    if kind.word in ("library", "triton", "collective", "sort", "callback", "custom call"):
        return _OWN.get(kind.hero, "custom call")
    if kind.hero in _NEVER_FUSED:
        return _OWN[kind.hero]
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


def _changes_layout(unit: Unit) -> bool:
    """Return whether a copy has a different layout than its operand."""
    values = [*unit.computation.operands(unit.instruction)[:1], unit.instruction]
    before, *after = ([array.layout for array in arrays(value.shape)] for value in values)
    return after not in ([], [before])
