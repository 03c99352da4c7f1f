"""The kernels of a program in words: as the rows of a table, and each in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from jaxsight.figures import collectives
from jaxsight.figures.figures import AnyFigures, line_names
from jaxsight.figures.summary import launches_of
from jaxsight.targets.roofline import bounds, together
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.wire.kernel_graph import Kernel

COLUMNS = ("", "kernel", "launches", "in", "out", "≈ time", "fusion boundary", "lines")
"""The titles of the cells of a row."""
SIDES = "rlrrrrll"
"""For each column `l` or `r`: left- or right-aligned."""
_LINES = 8
"""Lines of a kernel in a row, a choice: more would wrap, and a fused kernel may have hundreds."""


class KernelRow(NamedTuple):
    """What is shown of a kernel, in words."""

    number: str
    title: str
    """`loop fusion`, `⇄ all-reduce over data`, `input fusion (reduction) for scan at line 12`."""
    depth: int
    """The loops around it."""
    launches: str
    """`7`, `3–7`, `≥ 7`."""
    read: str
    written: str
    time: str
    """`36 µs`; `≥ 36 µs` for a scatter that takes longer where indices are equal; may be empty."""
    boundary: str
    lines: str
    """The lines that it computes (`9, 10`)."""

    def cells(self, indent: str = "") -> tuple[str, ...]:
        """Return the texts in the order of `COLUMNS`, the title moved in for each loop."""
        number, title, depth, *others = self
        return number, f"{indent * depth}{title}", *others


def row(figures: AnyFigures, index: int) -> KernelRow:
    """Return what is shown of a kernel."""
    kernel = figures.graph.kernels[index]
    return KernelRow(
        str(index + 1),
        f"{collectives.kernel_title(kernel)} {figures.feeding(kernel)}".rstrip(),
        len(kernel.loops),
        launches_of(kernel),
        units.size(kernel.bytes_in),
        units.size(kernel.bytes_out),
        _time(figures, kernel),
        figures.reason(kernel),
        ", ".join(line_names(figures.places, kernel.equations)[:_LINES]),
    )


def rows(figures: AnyFigures, most: int | None = None) -> list[KernelRow]:
    """Return what is shown of each kernel, at most so many."""
    return [row(figures, index) for index in range(figures.graph.kernel_count)[:most]]


def filled(
    columns: Sequence[str], sides: str, rows: Sequence[Sequence[str]]
) -> tuple[Sequence[str], str, Sequence[Sequence[str]]]:
    """Return the titles, the sides and the rows of a table without its empty columns."""
    kept = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    return (
        [columns[at] for at in kept],
        "".join(sides[at] for at in kept),
        [[row[at] for at in kept] for row in rows],
    )


def table(
    figures: AnyFigures, most: int | None = None, indent: str = "  "
) -> tuple[Sequence[str], str, Sequence[Sequence[str]]]:
    """Return the titles, the sides and the rows of a table of the kernels, at most so many."""
    return filled(COLUMNS, SIDES, [each.cells(indent) for each in rows(figures, most)])


def sentence(figures: AnyFigures, index: int) -> str:
    """Return one kernel in a sentence."""
    kernel = figures.graph.kernels[index]
    if kernel.collective is not None:
        title, reason, *_ = collectives.described(figures, index)
        return f"{collectives.SIGN} {title}; {reason}; {collectives.time(figures, kernel)}"
    own = row(figures, index)
    on = " on each device" if figures.compiled.devices > 1 else ""
    times = f", launched {own.launches} times" if own.launches != "1" else ""
    if kernel.launches == 0:
        times = ", never launched as the number of iterations is known"
    return (
        f"kernel {own.number}: {own.title}{times}, {own.read} in, {own.written} out{on}; "
        f"fusion boundary: {own.boundary}"
    )


def _time(figures: AnyFigures, kernel: Kernel) -> str:
    found = bounds(kernel, figures.target)
    if found is None or not kernel.launches:
        return ""
    return f"{'' if found.is_certain else '≥ '}{units.time(found.least)}"


# A function's kernels by the functions and modules that their equations were created in.


FEW = 20
"""Kernels that a table lists, a choice: a screen. Programs with more are summed up by module."""

Scope = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelGroup:
    """Kernels of a scope: their indices, and sums over all their launches in one run.

    `bytes` are read and written, each input once; `seconds` is an estimate, `None` if that of one
    of the kernels is unknown.
    """

    scope: Scope
    kernels: tuple[int, ...]
    bytes: int
    seconds: float | None


def groups(kernels: AnyFigures, most: int) -> list[KernelGroup]:
    """Return at most about `most` groups, as deep as that allows, in the order of first launch.

    The first level is not cut further. Kernels of the function itself have an empty scope.
    """
    scopes = [kernels.scope(kernel) for kernel in kernels.graph.kernels]
    deepest = max(map(len, scopes), default=0)
    cut = scopes
    for depth in range(deepest, 0, -1):
        cut = [scope[:depth] for scope in scopes]
        if len(set(cut)) <= most:
            break
    by_scope: dict[Scope, list[int]] = {}
    for index, scope in enumerate(cut):
        by_scope.setdefault(scope, []).append(index)
    return [_group(kernels, scope, indices) for scope, indices in by_scope.items()]


def runs(kernels: AnyFigures) -> list[KernelGroup]:
    """Return the runs of successive kernels of one scope, in the order of launches."""
    every = kernels.graph.kernels
    numbered = groupby(range(len(every)), key=lambda index: kernels.scope(every[index]))
    return [_group(kernels, scope, [*indices]) for scope, indices in numbered]


def _group(kernels: AnyFigures, scope: Scope, indices: Sequence[int]) -> KernelGroup:
    chosen = [kernels.graph.kernels[index] for index in indices]
    moved = sum(kernel.runs * (kernel.bytes_in + kernel.bytes_out) for kernel in chosen)
    return KernelGroup(scope, tuple(indices), moved, together(chosen, kernels.target))


def group_title(group: KernelGroup, function: str) -> str:
    """Return `loss/model/blocks[3]/attn`; the function's name for its own kernels."""
    return one_line("/".join(group.scope) or function)


def group_words(group: KernelGroup) -> list[str]:
    """Return `12 kernels`, `4 MiB` and, where it is known, `≈ 3.6 µs`."""
    words = [units.count(len(group.kernels), "kernel"), units.size(group.bytes)]
    if group.seconds is not None and group.seconds >= units.SHORTEST:
        words.append(units.about(group.seconds))
    return words


def by_module(kernels: AnyFigures, function: str, most: int) -> Iterator[str]:
    """Yield `loss/model/blocks[3]/attn: 12 kernels, 4 MiB` for each group of a large program.

    Yields nothing for a small one, and for one whose kernels all belong to the same group.
    """
    found = groups(kernels, most) if kernels.graph.kernel_count > FEW else []
    for group in found if len(found) > 1 else ():
        yield f"{group_title(group, function)}: {', '.join(group_words(group))}"
