"""A sweep in rows: of a table for people, of CSV and of JSON."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Literal, TypeAlias

from jaxsight.sweeps.points import LargestSize, Sweep, SweepPoint, written
from jaxsight.text import units

# Where XLA changes its mind: the same program with a larger size has other kernels.
#
# A program that has other equations with another size, such as a Python loop over it, is no such
# place: the function itself differs there.


@dataclass(frozen=True, slots=True)
class KernelChange:
    """Two successive points whose kernels differ, of one program."""

    before: SweepPoint
    after: SweepPoint

    @property
    def gone(self) -> list[str]:
        """The kernels of the first that the second has not, as `2 × loop fusion`."""
        return _counted(Counter(self.before.kinds) - Counter(self.after.kinds))

    @property
    def new(self) -> list[str]:
        """The kernels of the second that the first has not."""
        return _counted(Counter(self.after.kinds) - Counter(self.before.kinds))


def _counted(kinds: Counter[str]) -> list[str]:
    return [f"{number} × {kind}" if number > 1 else kind for kind, number in kinds.items()]


def changes(points: Sequence[SweepPoint]) -> Iterator[KernelChange]:
    """Yield the changes between successive points of a curve."""
    compiled = [point for point in points if point.is_compiled]
    for before, after in pairwise(compiled):
        if before.program == after.program and Counter(before.kinds) != Counter(after.kinds):
            yield KernelChange(before, after)


def other_programs(points: Sequence[SweepPoint]) -> bool:
    """Return whether the function itself differs between points: it has other equations."""
    return len({point.program for point in points if point.is_compiled}) > 1


FigureName: TypeAlias = Literal[
    "kernels", "launches", "temp", "arguments", "memory", "traffic", "moved", "time", "measured"
]
"""A figure as `--plot` and Python name it."""

_UNKNOWN = "?"
_INTERNAL = ("kinds", "program", "is_too_large")
"""Fields of a point that are not written as figures."""
_LISTED = 4
"""Kinds of kernels, and sizes with one problem, that a line names, a choice: more would wrap."""


@dataclass(frozen=True, slots=True)
class SweptFigure:
    """A figure of every point: a column of the table, and what a picture may show."""

    column: str
    title: str
    value: Callable[[SweepPoint], float | None]
    shown: Callable[[float], str]
    """Writes an amount, also that of a tick of an axis."""
    cell: Callable[[SweepPoint], str] | None = None
    """Writes it for the table, where that is not the amount alone."""

    @property
    def is_size(self) -> bool:
        """Whether it is an amount of memory."""
        return self.shown is units.size

    @property
    def is_time(self) -> bool:
        """Whether it is a time."""
        return self.shown is units.time

    def text(self, point: SweepPoint) -> str:
        """Return the figure of a compiled point."""
        if self.cell is not None:
            return self.cell(point)
        value = self.value(point)
        return _UNKNOWN if value is None else self.shown(value)


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _temporaries(point: SweepPoint) -> str:
    if point.temp_bytes is None:
        return _UNKNOWN
    return units.interval(point.temp_bytes, point.temp_bytes_at_most, units.size)


def _time(point: SweepPoint) -> str:
    seconds = point.estimate_seconds
    if seconds is None or (point.estimate_is_lower_bound and seconds < units.SHORTEST):
        return _UNKNOWN
    return f"{'≥ ' if point.estimate_is_lower_bound else ''}{units.time(seconds)}"


FIGURES: Mapping[str, SweptFigure] = {
    "kernels": SweptFigure(
        "kernels",
        "kernels",
        lambda p: p.kernel_count,
        _number,
        lambda p: units.interval(p.kernel_count or 0, p.kernels_at_most),
    ),
    "launches": SweptFigure(
        "launches",
        "launches",
        lambda p: p.launch_count,
        _number,
        lambda p: units.interval(p.launch_count or 0, p.launches_at_most),
    ),
    "temp": SweptFigure(
        "temp", "temporary memory", lambda p: p.temp_bytes, units.size, _temporaries
    ),
    "arguments": SweptFigure(
        "arguments", "memory of arguments", lambda p: p.argument_bytes, units.size
    ),
    "memory": SweptFigure(
        "memory", "arguments, results and temporaries", lambda p: p.needed_bytes, units.size
    ),
    "traffic": SweptFigure(
        "in + out", "bytes that kernels read and write", lambda p: p.traffic_bytes, units.size
    ),
    "moved": SweptFigure(
        "moved", "bytes that collectives move", lambda p: p.moved_bytes, units.size
    ),
    "time": SweptFigure(
        "≈ time", "estimated time", lambda p: p.estimate_seconds, units.time, _time
    ),
    "measured": SweptFigure("measured", "measured time", lambda p: p.wall_seconds, units.time),
}
"""The figures by `FigureName`, in the order of the table's columns."""


def columns(sweep: Sweep) -> list[SweptFigure]:
    """Return the figures of a table: those that any point has."""
    absent = {"launches", "moved"}
    if any(point.launch_count != point.kernel_count for point in sweep.points):
        absent.discard("launches")
    if any(point.moved_bytes for point in sweep.points):
        absent.discard("moved")
    if all(point.estimate_seconds is None for point in sweep.points):
        absent.add("time")
    if all(point.wall_seconds is None for point in sweep.points):
        absent.add("measured")
    return [figure for name, figure in FIGURES.items() if name not in absent]


def titles(sweep: Sweep) -> tuple[str, ...]:
    """Return the titles of the columns: the sizes, then the figures."""
    return (*(size.name for size in sweep.swept), *(each.column for each in columns(sweep)))


def rows(sweep: Sweep) -> Iterator[tuple[str, ...]]:
    """Yield the row of each point: its sizes, and its figures, or in their place the problem."""
    figures = columns(sweep)
    for point in sweep.points:
        sizes = [f"{point.sizes[size.name]:,}" for size in sweep.swept]
        shown = (figure.text(point) if point.is_compiled else "–" for figure in figures)
        yield (*sizes, *shown)


def remarks(sweep: Sweep) -> Iterator[str]:
    """Yield lines below the table: problems, where XLA changes its mind, the largest sizes."""
    problems: dict[str, list[str]] = {}
    for point in sweep.points:
        if point.problem:
            problems.setdefault(point.problem, []).append(written(point.sizes))
    for problem, sizes in problems.items():
        yield (
            problem
            if len(sizes) == len(sweep.points)
            else f"{units.some(sizes, _LISTED)}: {problem}"
        )
    for _, points in sweep.curves():
        yield from map(change_line, changes(points))
    if other_programs(sweep.points):
        yield "the function itself differs with the sizes: it has other equations"
    yield from (largest_line(each) for each in sweep.largest if each.reason not in problems)


def change_line(change: KernelChange) -> str:
    """Return `B=64: XLA makes 5 kernels of the same program, 3 with B=32: + …, − …`."""
    before, after = change.before, change.after
    count = units.count(after.kernel_count or 0, "kernel")
    parts = [
        f"{sign} {units.some(kinds, _LISTED)}"
        for sign, kinds in (("+", change.new), ("−", change.gone))
        if kinds
    ]
    return (
        f"{written(after.sizes)}: XLA makes {count} of the same program, "
        f"{before.kernel_count} with {written(before.sizes)}: {', '.join(parts)}"
    )


def largest_line(largest: LargestSize) -> str:
    """Return `largest B that fits in 80 GiB: 5,242 (needs 79.9 GiB)`."""
    others = f" with {written(largest.others)}" if largest.others else ""
    start = f"largest {largest.name} that fits in {units.size(largest.memory_bytes)}{others}"
    if largest.size is None:
        return f"{start}: {largest.reason or 'none'}"
    needed = f" (needs {units.size(largest.needed_bytes)})" if largest.needed_bytes else ""
    if largest.is_exact:
        return f"{start}: {largest.size:,}{needed}"
    known = f"at least {largest.size:,}{needed}"
    if largest.too_large is not None:
        known = f"{known}, less than {largest.too_large:,}"
    return f"{start}: {known}{f'; {largest.reason}' if largest.reason else ''}"


def record(sweep: Sweep) -> dict[str, object]:
    """Return a sweep as JSON: sizes of memory in bytes, times in seconds."""
    return {
        "function": sweep.function,
        "target": sweep.target,
        "swept": {size.name: list(size.values) for size in sweep.swept},
        "points": [_point(point) for point in sweep.points],
        "changes": [
            {
                "sizes": dict(change.after.sizes),
                "before": dict(change.before.sizes),
                "new": change.new,
                "gone": change.gone,
            }
            for _, points in sweep.curves()
            for change in changes(points)
        ],
        "largest": [
            {
                "sizes": largest.sizes,
                "needed_bytes": largest.needed_bytes,
                "memory_bytes": largest.memory_bytes,
                "too_large": largest.too_large,
                "is_exact": largest.is_exact,
                "compiles": largest.compiles,
                "reason": largest.reason or None,
            }
            for largest in sweep.largest
        ],
    }


def _point(point: SweepPoint) -> dict[str, object]:
    known = asdict(point)
    return {
        **{name: value for name, value in known.items() if name not in _INTERNAL},
        "sizes": dict(point.sizes),
        "problem": point.problem or None,
        "needed_bytes": point.needed_bytes,
        "kinds": list(point.kinds),
    }


def as_csv(sweeps: Sequence[Sweep]) -> str:
    """Return the points of sweeps as CSV, with a header; what is unknown is empty."""
    text = io.StringIO()
    sizes = list(dict.fromkeys(size.name for sweep in sweeps for size in sweep.swept))
    own = [f.name for f in fields(SweepPoint) if f.name not in ("sizes", *_INTERNAL)]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["function", "target", *sizes, *own, "needed_bytes"])
    for sweep in sweeps:
        for point in sweep.points:
            figures = [getattr(point, name) for name in own]
            of_sizes = [point.sizes.get(name) for name in sizes]
            writer.writerow([sweep.function, sweep.target, *of_sizes, *figures, point.needed_bytes])
    return text.getvalue()
