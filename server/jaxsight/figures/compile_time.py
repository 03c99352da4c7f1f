"""How long a function is traced, lowered and compiled, and which lines its equations are from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jaxsight.figures.figures import AnyFigures
from jaxsight.figures.summary import xla_seconds
from jaxsight.text.units import seconds
from jaxsight.wire.chunks import Span

_NOTICED = 2.0
"""Seconds of all stages from which hovers and tooltips list them: shorter ones interrupt nobody."""
_MANY = 1000
"""Equations from which a function says which lines they are from, a choice: fewer compile fast."""
_LINES = 3
"""Lines that are listed, a choice: a loop that was unrolled is one."""
_SHARE = 0.1
"""The least share of all equations of a line that is listed: changing less saves no time."""


def lines(kernels: AnyFigures) -> list[str]:
    """Return the times of all stages, and the lines of most equations if there are many."""
    return [shares(kernels), *_by_line(kernels)]


def notable_lines(kernels: AnyFigures) -> list[str]:
    """Return the same, without the times of a function that is made quickly."""
    made = (kernels.trace_seconds or 0.0) + kernels.lowered.seconds + kernels.compiled.seconds
    return lines(kernels) if made >= _NOTICED else list(_by_line(kernels))


def shares(kernels: AnyFigures) -> str:
    """Return `trace 0.4 s · lower 0.2 s · XLA 6.1 s`: the times as measured, cached ones too."""
    traced = kernels.trace_seconds
    stages = [f"trace {seconds(traced)}"] if traced is not None else []
    lowered, xla = kernels.lowered.seconds, xla_seconds(kernels.compiled)
    return " · ".join([*stages, f"lower {seconds(lowered)}", f"XLA {xla}"])


def equations_by_line(kernels: AnyFigures) -> Counter[int]:
    """Return the number of equations of each line (from 1), inner ones included."""
    alike: dict[Span | None, str] = {}  # a place takes far longer to find than a span
    numbers = Counter(
        path if equation.span is None else alike.setdefault(equation.span, path)
        for path, equation in kernels.equations.items()
    )
    lines = Counter[int]()
    for path, number in numbers.items():
        if (line := kernels.line(path)) is not None:
            lines[line] += number
    return lines


def _by_line(kernels: AnyFigures) -> Iterator[str]:
    """Yield `line 14: 1,200 of 1,500 equations` for the lines that make a trace large."""
    total = len(kernels.equations)
    if total < _MANY:
        return
    for line, number in equations_by_line(kernels).most_common(_LINES):
        if number >= _SHARE * total:
            yield f"line {line}: {number:,} of {total:,} equations"
