"""Curves of sweeps: a figure over the first swept size, a curve for each function.

A picture is a list of shapes, which `svg` writes as a file and the panel adds to its page. It needs
no script, font or file of others, follows a dark theme, and shows the values of a point when the
pointer is on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from jaxsight.sweeps.points import Sweep, SweepPoint, written
from jaxsight.sweeps.table import SweptFigure, changes
from jaxsight.text.inert import visible

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 40, 48
"""Margins: for the numbers of the vertical axis, and for the titles."""
_FLOOR = _HEIGHT - _BOTTOM
_LINE = 18
"""Height of a line of the legend."""
_TICKS = 6
"""Numbers on an axis, about."""
_FEW_SIZES = 12
"""Sizes that are all written below the axis, a choice: they have the place."""
_SPREAD = 16
"""An axis is logarithmic if its largest number is more than this many times its smallest one, a
choice: as with values that double."""
_COLOURS = ("#1a73e8", "#d93025", "#188038", "#9334e6", "#e37400", "#12939a", "#c2185b", "#5f6368")
_DASHES = ("", "7 4", "2 4")
"""Of curves after each other, so that equal ones are all seen."""

_STYLE = """\
.ground { fill: #ffffff } .ink { fill: #202124 } .dim { fill: #5f6368 }
.line { stroke: #dadce0 } .axis { stroke: #9aa0a6 } .limit { stroke: #b31412 }
@media (prefers-color-scheme: dark) {
  .ground { fill: #202124 } .ink { fill: #e8eaed } .dim { fill: #9aa0a6 }
  .line { stroke: #3c4043 } .axis { stroke: #80868b } .limit { stroke: #f28b82 }
}"""


@dataclass(frozen=True, slots=True)
class DrawnShape:
    """An element of SVG; `text` is its text, or of a shape without one its tooltip."""

    tag: Literal["text", "line", "polyline", "circle"]
    attributes: Mapping[str, str]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """The shapes of curves, in the order in which they are drawn, and the size of the whole."""

    title: str
    width: int
    height: int
    shapes: tuple[DrawnShape, ...]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where numbers of an axis are drawn: linear, or by their logarithms."""

    least: float
    most: float
    begin: float
    end: float
    is_logarithmic: bool

    @staticmethod
    def of(numbers: Sequence[float], begin: float, end: float, *, from_zero: bool) -> _Scale:
        least, most = min(numbers), max(numbers)
        is_logarithmic = least > 0 and most > _SPREAD * least
        if from_zero and not is_logarithmic:
            least = min(0.0, least)
        if most <= least:
            most = least + 1
        return _Scale(least, most, begin, end, is_logarithmic)

    def at(self, number: float) -> float:
        if self.is_logarithmic:
            share = math.log(number / self.least) / math.log(self.most / self.least)
        else:
            share = (number - self.least) / (self.most - self.least)
        return self.begin + share * (self.end - self.begin)

    def ticks(self, base: Literal[2, 10], least_step: float) -> Iterator[float]:
        """Yield round numbers between the ends.

        Args:
            base: whether powers of two are round, or those of ten.
            least_step: the least distance of two numbers of a linear axis.
        """
        if self.is_logarithmic:
            first = math.floor(math.log(self.least, base) + 1e-9)
            last = math.floor(math.log(self.most, base) + 1e-9)
            stride = max(1, math.ceil((last - first + 1) / (2 * _TICKS)))
            between = (1, 2, 5) if base == 10 and last - first < 3 else (1,)
            for exponent in range(first, last + 1, stride):
                numbers = (each * float(base) ** exponent for each in between)
                yield from (n for n in numbers if self.least * 0.999 <= n <= self.most * 1.001)
            return
        width = (self.most - self.least) / _TICKS
        power = float(base) ** math.floor(math.log(width, base))
        round_steps = (1, 2, 5, 10) if base == 10 else (1, 2)
        step = next(power * each for each in round_steps if power * each >= width * 0.999)
        step = max(step, least_step)
        for number in range(math.ceil(self.least / step), math.floor(self.most / step) + 1):
            yield number * step


def picture(sweeps: Sequence[Sweep], figure: SweptFigure) -> Picture:
    """Return the curves of a figure over the first swept size.

    Args:
        sweeps: one for each function, with the same first size.
        figure: what to draw.

    Raises:
        LookupError: no point has the figure.
    """
    curves = [
        (_name(sweep, others, len(sweeps)), points)
        for sweep in sweeps
        for others, points in sweep.curves()
    ]
    name = sweeps[0].swept[0].name
    known = [
        (point.sizes[name], value)
        for _, points in curves
        for point in points
        if (value := figure.value(point)) is not None
    ]
    if not known:
        raise LookupError(f"no point has a known {figure.title}")
    sizes = [size for size, _ in known]
    across = _Scale.of(sizes, _LEFT, _WIDTH - _RIGHT, from_zero=False)
    upward = _Scale.of([value for _, value in known], _FLOOR, _TOP, from_zero=True)
    targets = ", ".join(dict.fromkeys(sweep.target for sweep in sweeps))
    own = f"{sweeps[0].function}: " if len(sweeps) == 1 else ""
    title = f"{own}{figure.title} over {name}, {targets}"
    shapes = [
        _words(_LEFT, 22, title, "ink"),
        *_axes(across, upward, name, _sizes(across, sizes), figure),
        *_limits(sweeps, across, name),
    ]
    lines = len(curves) if len(curves) > 1 else 0
    if any(True for _, points in curves for _ in changes(points)):
        note = "○ XLA makes other kernels than with the size before"
        shapes.append(_words(_LEFT, _HEIGHT + lines * _LINE + 4, note, "dim"))
        lines += 1
    for number, (label, points) in enumerate(curves):
        shapes += _curve(number, label, points, name, figure, across, upward)
        if len(curves) > 1:
            y = _HEIGHT + number * _LINE
            shapes.append(_line(_LEFT, y, _LEFT + 24, y, **_look(number)))
            shapes.append(_words(_LEFT + 32, y + 4, label, "ink"))
    return Picture(title, _WIDTH, _HEIGHT + lines * _LINE, tuple(shapes))


def svg(sweeps: Sequence[Sweep], figure: SweptFigure) -> str:
    """Return the picture as the text of an SVG file.

    Raises:
        LookupError: no point has the figure.
    """
    drawn = picture(sweeps, figure)
    size = f'viewBox="0 0 {drawn.width} {drawn.height}" width="{drawn.width}"'
    font = 'font-family="Helvetica, Arial, sans-serif" font-size="12"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} height="{drawn.height}" {font}>',
            f"<title>{_escaped(drawn.title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="ground" width="{drawn.width}" height="{drawn.height}"/>',
            *map(_element, drawn.shapes),
            "</svg>",
            "",
        ]
    )


def _element(shape: DrawnShape) -> str:
    from html import escape  # its table of entities is large, and few sessions draw

    attributes = " ".join(f'{name}="{escape(value)}"' for name, value in shape.attributes.items())
    if (text := _escaped(shape.text)) and shape.tag != "text":
        text = f"<title>{text}</title>"
    return f"<{shape.tag} {attributes}>{text}</{shape.tag}>"


def _escaped(text: str) -> str:
    from html import escape

    return escape(visible(text))


def _words(
    x: float, y: float, text: str, look: Literal["ink", "dim"], anchor: str = "start"
) -> DrawnShape:
    at = {"x": f"{x:.1f}", "y": f"{y:.1f}"}
    return DrawnShape("text", {"class": look, **at, "text-anchor": anchor}, text)


def _line(x1: float, y1: float, x2: float, y2: float, text: str = "", **look: str) -> DrawnShape:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return DrawnShape("line", {**look, **{name: f"{at:.1f}" for name, at in ends.items()}}, text)


def _name(sweep: Sweep, others: str, count: int) -> str:
    """Return `f, L=128`: the function, if there are several, and the other sizes."""
    return ", ".join(filter(None, (sweep.function if count > 1 or not others else "", others)))


def _axes(
    across: _Scale, upward: _Scale, name: str, sizes: Sequence[float], figure: SweptFigure
) -> Iterator[DrawnShape]:
    """Yield the lines of round numbers, the numbers, and the size's name."""
    right = _WIDTH - _RIGHT
    for value in upward.ticks(2 if figure.is_size else 10, 0 if figure.is_time else 1):
        y = upward.at(value)
        yield _line(_LEFT, y, right, y, **{"class": "line"})
        label = figure.shown(value) if value > 0 else "0"
        yield _words(_LEFT - 8, y + 4, label, "dim", "end")
    for size in sizes:
        x = across.at(size)
        yield _line(x, _FLOOR, x, _FLOOR + 5, **{"class": "axis"})
        yield _words(x, _FLOOR + 18, f"{size:,.0f}", "dim", "middle")
    yield _line(_LEFT, _FLOOR, right, _FLOOR, **{"class": "axis"})
    yield _words((_LEFT + right) / 2, _FLOOR + 36, name, "ink", "middle")


def _sizes(across: _Scale, swept: Sequence[int]) -> list[float]:
    """Return the sizes that are written below the axis: all of a few, else round ones."""
    every = sorted(set(swept))
    if len(every) <= _FEW_SIZES and not across.is_logarithmic:
        return [float(size) for size in every]
    return [*across.ticks(2 if across.is_logarithmic else 10, 1)]


def _limits(sweeps: Sequence[Sweep], across: _Scale, name: str) -> Iterator[DrawnShape]:
    """Yield a line at each largest size that is exact and within the picture."""
    for sweep in sweeps:
        for largest in sweep.largest:
            size = largest.size if largest.is_exact else None
            if size is not None and across.least <= size <= across.most:
                x = across.at(size)
                tip = f"{sweep.function}: largest {name} that fits is {size:,}"
                look = {"class": "limit", "stroke-dasharray": "4 3"}
                yield _line(x, _TOP, x, _FLOOR, tip, **look)


def _look(number: int) -> dict[str, str]:
    """Return the attributes of a curve's line."""
    colour = _COLOURS[number % len(_COLOURS)]
    dash = _DASHES[number % len(_DASHES)]
    dashed = {"stroke-dasharray": dash} if dash else {}
    return {"stroke": colour, "stroke-width": "2", "fill": "none", **dashed}


def _curve(
    number: int,
    label: str,
    points: Sequence[SweepPoint],
    name: str,
    figure: SweptFigure,
    across: _Scale,
    upward: _Scale,
) -> Iterator[DrawnShape]:
    """Yield a curve, interrupted where the figure is unknown, with a mark at each point."""
    colour = _COLOURS[number % len(_COLOURS)]
    changed = {id(change.after) for change in changes(points)}
    pieces: list[list[str]] = [[]]
    marks: list[DrawnShape] = []
    for point in points:
        if (value := figure.value(point)) is None:
            pieces.append([])
            continue
        x, y = f"{across.at(point.sizes[name]):.1f}", f"{upward.at(value):.1f}"
        pieces[-1].append(f"{x},{y}")
        has_changed = id(point) in changed
        look = {"class": "ground", "r": "4.5"} if has_changed else {"fill": colour, "r": "3.5"}
        words = ", other kernels than before" if has_changed else ""
        tip = f"{label}: {written(point.sizes)}: {figure.text(point)}{words}"
        place = {"cx": x, "cy": y, "stroke": colour, "stroke-width": "2"}
        marks.append(DrawnShape("circle", {**place, **look}, tip))
    for piece in pieces:
        if len(piece) > 1:
            yield DrawnShape("polyline", {"points": " ".join(piece), **_look(number)})
    yield from marks
