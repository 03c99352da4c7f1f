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
    boundaries = _Boundaries(units, kinds, fused, flow, frozenset(barriers))
    return [boundaries.reason(index) for index in range(len(units))]


class _Boundaries:
    """The reasons of the kernels themselves, and the kernels that read their results."""

    def __init__(
        self,
        units: list[Unit],
        kinds: list[Kind],
        fused: Fused,
        flow: Flow,
        barriers: frozenset[str],
    ) -> None:
        self._units = units
        self._kinds = kinds
        self._fused = fused
        self._flow = flow
        self._barriers = barriers
        self._own = [
            _own_reason(unit, kind, fused) for unit, kind in zip(units, kinds, strict=True)
        ]
        self._readers: dict[int, set[int]] = {}
        for source, kernel, _ in flow.reads:
            if source.what == KERNEL:
                self._readers.setdefault(source.index, set()).add(kernel)
        self._outputs = {source.index for source, _, _ in flow.outputs if source.what == KERNEL}

    def reason(self, index: int) -> tuple[str, str]:
        """Return the reason of a kernel, and the equation if it is in another kernel."""
        readers = sorted(self._readers.get(index, set()) - {index})
        if reason := self._before_readers(index, readers):
            return reason, ""
        if (boundary := self._in_readers(index, readers)) is not None:
            return boundary
        return self._after_readers(index, readers), ""

    def _before_readers(self, index: int, readers: list[int]) -> str:
        """Return the reason of a kernel if its readers do not matter, or `""`."""
        unit, own = self._units[index], self._own[index]
        if own and own != "concat/slice":
            return own
        if _feeds_barrier(unit, self._fused, self._barriers):
            return "optimization_barrier"
        if self._flow.feeds_loop.get(index) or (unit.loops and not readers):
            return "while"  # It is for the next iteration, or decides whether there is one.
        return OUTPUT if not readers and index in self._outputs else ""

    def _in_readers(self, index: int, readers: list[int]) -> tuple[str, str] | None:
        """Return the reason in the kernels that read the results, if there is one."""
        for kernel in readers:
            if self._own[kernel] in _BEFORE:
                return self._own[kernel], self._units[kernel].instruction.equation
        if any(self._units[kernel].loops != self._units[index].loops for kernel in readers):
            return "while", ""
        for kernel in readers:
            if self._kinds[kernel].hero in _REDUCTIONS:
                return "reduction", _reduction(self._units[kernel], self._fused)
        return None

    def _after_readers(self, index: int, readers: list[int]) -> str:
        """Return the reason of a kernel that no operation ends."""
        if self._own[index]:
            return self._own[index]
        if len(readers) > 1:
            return "shared result"
        if index in self._outputs:
            return OUTPUT
        if self._units[index].branch >= 0 or index in self._flow.chooses:
            return "conditional"
        return "XLA's choice"


def _reduction(unit: Unit, fused: Fused) -> str:
    """Return the equation of the reduction in a kernel."""
    inside = fused.inside(unit.instruction)
    return next(
        (instruction.equation for instruction in inside if instruction.opcode in _REDUCTIONS), ""
    )


def _own_reason(unit: Unit, kind: Kind, fused: Fused) -> str:
    """Return the reason in the kernel itself, or `""` if there is none."""
    roots = {root.opcode for root in fused.roots(unit.instruction)}
    if roots & _REDUCTIONS:
        return "reduction"
    if kind.word == "copy":
        return "layout change" if kind.hero == "transpose" or _changes_layout(unit) else ""
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


def _changes_layout(unit: Unit) -> bool:
    """Return whether a copy has a different layout than its operand."""
    operand = (
        unit.computation.by_name.get(unit.instruction.operands[0])
        if unit.instruction.operands
        else None
    )
    if operand is None:
        return False
    return [value.layout for value in arrays(operand.shape)] != [
        value.layout for value in arrays(unit.instruction.shape)
    ]


def _feeds_barrier(unit: Unit, fused: Fused, stopped: frozenset[str]) -> bool:
    return bool(stopped) and any(root.equation in stopped for root in fused.roots(unit.instruction))
