"""A layered layout of directed graphs: boxes in rows, values between them from top to bottom.

It is that of Sugiyama, Tagawa and Toda ("Methods for visual understanding of hierarchical system
structures", 1981): boxes get a layer each, every layer an order with few crossings, and every box a
place close to its neighbours. Labels of values are boxes too, in layers between those of boxes, so
that no text covers another one. A value with several readers is one line that forks.

Coordinates are those of SVG: x to the right, y down, in pixels.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

_SWEEPS = 12
"""Passes over all layers that look for an order with fewer crossings, and for places: graphs of
programs hardly change after six."""
_LEAST_SWEEPS = 2
_WORK = 150_000
"""Cells that all passes look at, about: a second. Larger graphs get fewer passes."""
_APART = 14.0
"""Between two boxes of a layer."""
_LAYERS_APART = 18.0
_LINES_APART = 8.0
"""Between two lines of a layer, which have no text."""
_THIN = 2.0
"""The width of a line that passes a layer."""
_STRAIGHT = 4.0
"""How much more a line resists a bend than a box a move: long lines are to be straight."""
_BEND = 0.5
"""Where between two layers the handles of a curve are."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class LayeredBox:
    """A box of the graph. `rank` is its place in the program, which values usually go along."""

    key: Hashable
    width: float
    height: float
    rank: float
    entries: Mapping[Hashable, float] = field(default_factory=dict)
    """Where values enter, from the left edge, of a box that has a layout inside."""
    exits: Mapping[Hashable, float] = field(default_factory=dict)
    """The same of values that leave it."""
    is_first: bool = False
    """Whether it is in the first layer; `is_last`: in the last one."""
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class LayeredFlow:
    """A value: from a box to all boxes that read it, with the size of its label."""

    key: Hashable
    source: Hashable
    targets: tuple[Hashable, ...]
    width: float = 0.0
    """Of the label; 0 if there is none."""
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class LayeredLayout:
    """Where everything is: the upper left corners of boxes and labels, and lines."""

    width: float
    height: float
    boxes: Mapping[Hashable, Point]
    labels: Sequence[tuple[Hashable, Point]]
    """With the flow of each: a value that is read above and below its source has two."""
    lines: Sequence[tuple[Hashable, str, bool]]
    """The flow, the path as SVG has it, and whether its end has an arrow; one that has it at its
    beginning is written backwards."""


@dataclass(slots=True, eq=False)
class _Cell:
    """What takes place in a layer: a box, a label or a line that passes."""

    layer: int
    width: float
    height: float
    box: LayeredBox | None = None
    flow: LayeredFlow | None = None
    """Of a label."""
    above: list[_Link] = field(default_factory=list)
    below: list[_Link] = field(default_factory=list)
    at: int = 0
    """Its number in the layer."""
    x: float = 0.0
    """Its left edge."""

    @property
    def through(self) -> float:
        """Where lines pass, from its left edge."""
        return self.width / 2 if self.flow is None or self.box is not None else _THIN / 2


@dataclass(slots=True, eq=False)
class _Link:
    """A piece of a line from a cell to one in the next layer."""

    upper: _Cell
    lower: _Cell
    flow: LayeredFlow
    points_up: bool = False
    """Whether the arrow is at its upper end."""
    leaves: float = 0.0
    """Where it begins, from the left edge of the upper cell; `enters`: where it ends."""
    enters: float = 0.0


def layout(boxes: Sequence[LayeredBox], flows: Sequence[LayeredFlow]) -> LayeredLayout:
    """Return where the boxes, labels and lines of a graph are.

    Args:
        boxes: with distinct keys.
        flows: the values between them. One from a box to itself is not drawn.
    """
    layers = _layers(boxes, flows)
    _order(layers)
    _attach(layers)
    _spread(layers)
    return _places(layers)


def _layers(boxes: Sequence[LayeredBox], flows: Sequence[LayeredFlow]) -> list[list[_Cell]]:
    """Return the cells of each layer, linked with those of the next: boxes in even ones."""
    of = {box.key: box for box in boxes}
    ranks = {box.key: (box.rank, index) for index, box in enumerate(boxes)}
    downward: defaultdict[Hashable, list[Hashable]] = defaultdict(list)
    for flow in flows:
        for target in flow.targets:
            if ranks[flow.source] < ranks[target]:
                downward[flow.source].append(target)
            elif target != flow.source:
                downward[target].append(flow.source)
    layer = dict.fromkeys(ranks, 0)
    has_first = any(box.is_first for box in boxes)
    for key in sorted(ranks, key=ranks.__getitem__):
        if has_first and not of[key].is_first:
            layer[key] = max(layer[key], 2)
        for reader in downward[key]:
            layer[reader] = max(layer[reader], layer[key] + 2)
    last = max(layer.values(), default=0)
    if any(
        box.is_last and any(layer[box.key] <= layer[k] and not of[k].is_last for k in layer)
        for box in boxes
    ):
        last += 2
    read = {reader for readers in downward.values() for reader in readers}
    for key in sorted(ranks, key=ranks.__getitem__, reverse=True):
        if of[key].is_last:
            layer[key] = last
        elif key not in read and downward[key] and not of[key].is_first:
            layer[key] = min(map(layer.__getitem__, downward[key])) - 2
    cells = {key: _Cell(layer[key], of[key].width, of[key].height, of[key]) for key in ranks}
    layers: list[list[_Cell]] = [[] for _ in range(last + 1)]
    for key in ranks:
        layers[layer[key]].append(cells[key])
    for flow in flows:
        source = cells[flow.source]
        down = [cells[t] for t in flow.targets if ranks[flow.source] < ranks[t]]
        if down:
            trunk = _trunk(layers, flow, source, max(target.layer for target in down))
            for target in down:
                _link(trunk[target.layer - 1], target, flow)
        for target in (cells[t] for t in flow.targets if ranks[t] < ranks[flow.source]):
            trunk = _trunk(layers, flow, target, source.layer, points_up=True)
            _link(trunk[source.layer - 1], source, flow, points_up=True)
    return layers


def _trunk(
    layers: list[list[_Cell]],
    flow: LayeredFlow,
    upper: _Cell,
    end: int,
    *,
    points_up: bool = False,
) -> dict[int, _Cell]:
    """Add the label of a flow below a cell, and the line down to the layer above `end`."""
    trunk = {upper.layer: upper}
    for layer in range(upper.layer + 1, end):
        is_label = layer == upper.layer + 1 and flow.width > 0
        cell = _Cell(layer, _THIN, 0.0)
        if is_label:
            cell = _Cell(layer, flow.width, flow.height, flow=flow)
        layers[layer].append(cell)
        _link(trunk[layer - 1], cell, flow, points_up=points_up)
        trunk[layer] = cell
    return trunk


def _link(upper: _Cell, lower: _Cell, flow: LayeredFlow, *, points_up: bool = False) -> None:
    link = _Link(upper, lower, flow, points_up)
    upper.below.append(link)
    lower.above.append(link)


def _order(layers: list[list[_Cell]]) -> None:
    """Order every layer, so that few lines cross: each cell at the mean of its neighbours."""
    _number(layers)
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(_sweeps(layers)):
        if not fewest:
            break
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            means: dict[int, float] = {}
            for cell in layer:
                links, beside = (cell.above, -1) if down else (cell.below, 1)
                ends = [link.upper.at if down else link.lower.at for link in links]
                near = [end / len(layers[cell.layer + beside]) for end in ends]
                if near:
                    means[cell.at] = sum(near) / len(near)
            moved = [layer[at] for at in sorted(means, key=means.__getitem__)]
            for cell in layer:
                if cell.at not in means:  # it stays where it is
                    moved.insert(min(cell.at, len(moved)), cell)
            layer[:] = moved
            _number([layer])
        if (crossings := _crossings(layers)) < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    for layer, ordered in zip(layers, best, strict=True):
        layer[:] = ordered
    _number(layers)


def _sweeps(layers: Sequence[Sequence[_Cell]]) -> int:
    return max(_LEAST_SWEEPS, min(_SWEEPS, _WORK // max(sum(map(len, layers)), 1)))


def _number(layers: Iterable[Sequence[_Cell]]) -> None:
    for layer in layers:
        for index, cell in enumerate(layer):
            cell.at = index


def _crossings(layers: Sequence[Sequence[_Cell]]) -> int:
    """Return the number of pairs of lines that cross."""
    crossings = 0
    for layer in layers:
        ends: list[int] = []
        for cell in layer:
            below = sorted(link.lower.at for link in cell.below)
            crossings += sum(len(ends) - bisect_left(ends, end + 1) for end in below)
            for end in below:
                insort(ends, end)
    return crossings


def _attach(layers: Iterable[Iterable[_Cell]]) -> None:
    """Say where lines leave and enter each cell: in the order of their other ends."""
    for layer in layers:
        for cell in layer:
            for link, x in _ends(cell, sorted(cell.below, key=lambda link: link.lower.at)):
                link.leaves = x
            for link, x in _ends(
                cell, sorted(cell.above, key=lambda link: link.upper.at), top=True
            ):
                link.enters = x


def _ends(
    cell: _Cell, links: Sequence[_Link], *, top: bool = False
) -> Iterator[tuple[_Link, float]]:
    """Yield where each line meets a side of a cell: at its port, or spread evenly."""
    for index, link in enumerate(links):
        x = cell.through
        if cell.box is not None:
            ports = cell.box.entries if link.points_up != top else cell.box.exits
            x = ports.get(link.flow.key, cell.width * (index + 1) / (len(links) + 1))
        yield link, x


def _spread(layers: Sequence[Sequence[_Cell]]) -> None:
    """Place the cells of each layer side by side, as close to their neighbours as they can be."""
    for layer in layers:
        _fit(layer, [0.0] * len(layer), [1.0] * len(layer))
    sweeps = _sweeps(layers)
    for sweep in range(sweeps + 1):
        down, both = sweep % 2 == 0, sweep == sweeps
        for layer in layers if down else reversed(layers):
            wanted, weights = [], []
            for cell in layer:
                above = [link.upper.x + link.leaves - link.enters for link in cell.above]
                below = [link.lower.x + link.enters - link.leaves for link in cell.below]
                near = above + below if both else (above or below) if down else (below or above)
                wanted.append(sum(near) / len(near) if near else cell.x)
                weights.append(1.0 if cell.box or cell.flow else _STRAIGHT)
            _fit(layer, wanted, weights)


def _fit(layer: Sequence[_Cell], wanted: Sequence[float], weights: Sequence[float]) -> None:
    """Place cells close to where they are wanted, in their order, without overlaps.

    With the widths to the left taken off, places may not decrease, and the sum of squares is least
    if neighbours that would are moved to their mean (Ayer et al., 1955).
    """
    offsets = [0.0] * min(1, len(layer))
    for previous, cell in pairwise(layer):
        is_line = previous.width == cell.width == _THIN
        apart = _LINES_APART if is_line else _APART
        offsets.append(offsets[-1] + previous.width + apart)
    blocks: list[tuple[float, float, int]] = []  # the mean, its weight, and how many cells
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        mean, total, count = want - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            before, its, number = blocks.pop()
            mean = (mean * total + before * its) / (total + its)
            total, count = total + its, count + number
        blocks.append((mean, total, count))
    places = (mean for mean, _, count in blocks for _ in range(count))
    for cell, mean, offset in zip(layer, places, offsets, strict=True):
        cell.x = mean + offset


def _places(layers: Sequence[Sequence[_Cell]]) -> LayeredLayout:
    left = min((cell.x for layer in layers for cell in layer), default=0.0)
    right = max((cell.x + cell.width for layer in layers for cell in layer), default=0.0)
    heights = [max((cell.height for cell in layer), default=0.0) for layer in layers]
    *tops, y = accumulate((height + _LAYERS_APART for height in heights), initial=0.0)
    boxes: dict[Hashable, Point] = {}
    labels: list[tuple[Hashable, Point]] = []
    lines: list[tuple[Hashable, str, bool]] = []
    for layer, top, height in zip(layers, tops, heights, strict=True):
        for cell in layer:
            cell.x -= left
            corner = (cell.x, top + (height - cell.height) / 2)
            if cell.box is not None:
                boxes[cell.box.key] = corner
            elif cell.flow is not None:
                labels.append((cell.flow.key, (cell.x + _THIN, corner[1])))
    for layer, top, height in zip(layers, tops, heights, strict=True):
        lines += [
            _line(link, top, height, tops[cell.layer + 1], heights)
            for cell in layer
            for link in cell.below
        ]
    return LayeredLayout(right - left, max(y - _LAYERS_APART, 0.0), boxes, labels, lines)


def _line(
    link: _Link, top: float, height: float, next_top: float, heights: Sequence[float]
) -> tuple[Hashable, str, bool]:
    """Return a link as a path: down through the upper cell's layer, then over to the lower cell."""
    upper, lower = link.upper, link.lower
    x, end_x = upper.x + link.leaves, lower.x + link.enters
    # A box may be less high than its layer: its lines begin at its edge.
    y = top + (height + upper.height) / 2 if upper.box is not None else top
    edge = top + height
    end = next_top
    if lower.box is not None:
        end += (heights[lower.layer] - lower.height) / 2
    handle = edge + (next_top - edge) * _BEND
    curve = f"C{x:.1f} {handle:.1f} {end_x:.1f} {handle:.1f} {end_x:.1f} {next_top:.1f}"
    ends_at, key = upper.box if link.points_up else lower.box, link.flow.key
    # The line goes on inside of a box with a layout, and outside of one without extent.
    inside = (ends_at.exits if link.points_up else ends_at.entries) if ends_at is not None else {}
    has_arrow = ends_at is not None and ends_at.width > 0 and key not in inside
    if link.points_up:
        back = f"C{end_x:.1f} {handle:.1f} {x:.1f} {handle:.1f} {x:.1f} {edge:.1f}"
        return key, f"M{end_x:.1f} {end:.1f}{_to(end, next_top)}{back}{_to(edge, y)}", has_arrow
    return key, f"M{x:.1f} {y:.1f}{_to(y, edge)}{curve}{_to(next_top, end)}", has_arrow


def _to(begin: float, end: float) -> str:
    """Return a vertical piece of a path; none without length, which would have no direction."""
    return f"V{end:.1f}" if abs(end - begin) > _SHORTEST else ""


_SHORTEST = 0.05
"""Half of the last digit of a path."""
