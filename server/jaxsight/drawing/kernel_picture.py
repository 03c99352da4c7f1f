"""A kernel graph as SVG: boxes in the order of the program, and beside them lines for values.

Grey boxes are kernels, white ones around them loops and arms. The picture is complete in itself,
follows a dark theme, and has attributes for what programs that know no style sheets make of it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.text.layout import cut
from jaxsight.text.units import interval
from jaxsight.wire.kernel_graph import KERNEL, OUTPUT, PARAMETER, Edge, End, Graph, Kernel, Value

_MOST = 8
"""Operations in a kernel's box, a choice: fused loops have tens, and a taller box pushes the next
ones out of sight."""
_LONGEST = 44
"""Characters of a line in it, a choice: a box and the lines beside it fit a page."""
_SIZE = 11
"""Of the letters, in pixels."""
_ADVANCE = 0.61 * _SIZE
"""Width of a letter: those of the fonts in `_FONT` have 0.55 to 0.602 of the size."""
_LINE = 14
_PADDING = 7
_MARGIN = 10
_INSIDE = 10
"""Around what is in a loop, and below a box."""
_LANE = 9
"""Between two lines beside the boxes."""
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_COLOURS = {
    "ground": ("#ffffff", "#1f1f1f"),
    "kernel": ("#e4e6e9", "#3c4043"),
    "parameter": ("#e8f0fe", "#1f3a5f"),
    "output": ("#e6f4ea", "#1e4429"),
    "loop": ("#ffffff", "#1f1f1f"),
}
"""What boxes are filled with, in light and dark themes."""
_STROKE, _INK, _DIM = ("#9aa0a6", "#80868b"), ("#202124", "#e8eaed"), ("#5f6368", "#bdc1c6")

Source = Callable[[str], str]
"""Returns the source text of an equation, given by its path."""
_Key = tuple[str, int]


@dataclass(slots=True, eq=False)
class _Box:
    """A kernel, an input or a result, with the titles of the loops and arms around it."""

    name: str
    texts: list[str]
    around: tuple[tuple[_Key, str], ...] = ()
    """Outermost first."""
    top: float = 0.0
    ends: int = 0
    """The values that it reads."""

    @property
    def height(self) -> float:
        return len(self.texts) * _LINE + _PADDING


@dataclass(slots=True, eq=False)
class _Flow:
    """A value: from a line of its source's box to all boxes that read it."""

    source: _Box
    line: int
    targets: list[tuple[_Box, int]] = field(default_factory=list)
    """With the number of the end among those of the box."""

    @property
    def begin(self) -> float:
        return self.source.top + (self.line + 0.5) * _LINE + _PADDING / 2

    def ends(self) -> Iterator[tuple[_Box, float]]:
        """Yield the boxes that read it, each with the place where."""
        for box, number in self.targets:
            yield box, box.top + box.height * (number + 1) / (box.ends + 1)

    @property
    def span(self) -> tuple[float, float]:
        places = [self.begin, *(y for _, y in self.ends())]
        return min(places), max(places)


def svg(
    graph: Graph,
    source: Source,
    *,
    title: str = "",
    inputs: Sequence[str] = (),
    width: float | None = None,
) -> str:
    """Return a kernel graph as SVG.

    Args:
        graph: of a compiled program.
        source: returns the source text of an equation, given by its path.
        title: what the picture shows, for those who do not see it.
        inputs: the names of the program's parameters; ignored if they are not as many.
        width: of the picture in pixels, at most; the natural one by default.
    """
    boxes = _boxes(graph, source, inputs)
    flows = _flows(graph, boxes)
    frames, high = _stacked(boxes.values())
    widths = [_width(text) + 2 * (_PADDING + len(b.around) * _INSIDE) for b, text in _lines(boxes)]
    widths += [_width(text) + 2 * (depth + 1) * _INSIDE for depth, text, _, _ in frames]
    edge = max(widths, default=0.0)
    body = [
        shape
        for depth, text, top, bottom in sorted(frames)
        for shape in (
            _rect("loop", depth * _INSIDE, top, edge - 2 * depth * _INSIDE, bottom - top),
            _text("dim", (depth + 1) * _INSIDE, top + _LINE, text),
        )
    ]
    for box in boxes.values():
        left, right = _sides(box, edge)
        body.append(_rect(box.name, left, box.top, right - left, box.height))
        for number, text in enumerate(box.texts):
            style = "bold" if box.name == KERNEL and not number else "ink"
            y = box.top + (number + 1) * _LINE
            body.append(_text(style, left + _PADDING, y, text))
    lanes = 0
    for lane, flow in _in_lanes(flows):
        lanes = max(lanes, lane + 1)
        x, begin = edge + (lane + 1) * _LANE, flow.begin
        for target, y in flow.ends():
            line = f"M{_sides(flow.source, edge)[1]:.1f} {begin:.1f}H{x:.1f}V{y:.1f}"
            body.append(_arrow(f"{line}H{_sides(target, edge)[1]:.1f}"))
    wide = edge + (lanes + 1) * _LANE + 2 * _MARGIN
    high += 2 * _MARGIN
    scale = min(1.0, width / wide) if width else 1.0
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="jaxsight-kernels" role="img" '
        f'width="{wide * scale:.0f}" height="{high * scale:.0f}" '
        f'viewBox="0 0 {wide:.0f} {high:.0f}" font-family="{_FONT}" font-size="{_SIZE}">'
        f"<title>{escape(one_line(title or graph.module))}</title><style>{_style()}</style>"
        f'<defs><marker id="jaxsight-arrow" viewBox="0 0 8 8" refX="7.5" refY="4" '
        f'markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0.5L8 4L0 7.5z" '
        f'class="tip" fill="{_DIM[0]}"/></marker></defs>'
        f'<rect class="ground" width="100%" height="100%" fill="{_COLOURS["ground"][0]}"/>'
        f'<g transform="translate({_MARGIN} {_MARGIN})">{"".join(body)}</g></svg>'
    )


def _style() -> str:
    dark = {
        **{f".{name}": f"fill:{fill[1]}" for name, fill in _COLOURS.items()},
        ".edge": f"stroke:{_DIM[1]}",
        ".tip": f"fill:{_DIM[1]}",
        "rect:not(.ground)": f"stroke:{_STROKE[1]}",
        "text": f"fill:{_INK[1]}",
        "text.dim": f"fill:{_DIM[1]}",
    }
    rules = " ".join(f".jaxsight-kernels {place}{{{rule}}}" for place, rule in dark.items())
    return f"@media (prefers-color-scheme: dark) {{ {rules} }}"


def _width(text: str) -> float:
    """Return the width of a text in pixels; East Asian letters are two wide."""
    return _ADVANCE * sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _boxes(graph: Graph, source: Source, inputs: Sequence[str]) -> dict[_Key, _Box]:
    """Return the inputs, the kernels and the results, in the order of the program."""
    names = inputs if len(inputs) == len(graph.parameters) else [""] * len(graph.parameters)
    boxes: dict[_Key, _Box] = {}
    for index, (value, name) in enumerate(zip(graph.parameters, names, strict=True)):
        named = f"{cut(one_line(name), _LONGEST)}: " if name else ""
        boxes[PARAMETER, index] = _Box(PARAMETER, [f"{named}{_label(value)}"])
    for index, kernel in enumerate(graph.kernels):
        around = tuple(_regions(graph, kernel))[::-1]
        boxes[KERNEL, index] = _Box(KERNEL, _texts(index, kernel, source), around)
    for index, value in enumerate(graph.outputs):
        boxes[OUTPUT, index] = _Box(OUTPUT, [_label(value)])
    return boxes


def _label(value: Value) -> str:
    return f"{value.text} {units.size(value.bytes)}"


def _texts(index: int, kernel: Kernel, source: Source) -> list[str]:
    """Return what is written in the box of a kernel: its title, and what it computes."""
    launches = interval(kernel.launches, kernel.launches_at_most)
    lines = [f"{index + 1}: {kernel.title}{'' if launches == '1' else f' × {launches}'}"]
    texts = (" ".join(one_line(source(path)).split()) for path in kernel.equations)
    sources = list(dict.fromkeys(cut(text, _LONGEST) for text in texts))
    lines += sources[:_MOST]
    if len(sources) > _MOST:
        lines.append(f"… {len(sources) - _MOST} more")
    return lines


def _regions(graph: Graph, kernel: Kernel) -> Iterator[tuple[_Key, str]]:
    """Yield the loops and arms around a kernel with their titles, innermost first."""
    loop, branch = kernel.loops[-1] if kernel.loops else -1, kernel.branch
    while loop >= 0 or branch >= 0:
        if branch >= 0 and graph.branches[branch].loop == loop:
            arm = graph.branches[branch]
            yield ("arm", branch), f"arm {arm.arm + 1} of {arm.arms}"
            branch = arm.parent
        elif loop >= 0:
            trips = graph.loops[loop].trips
            yield ("loop", loop), f"{graph.loops[loop].name} × {'?' if trips is None else trips}"
            loop = graph.loops[loop].parent
        else:
            branch = graph.branches[branch].parent


def _flows(graph: Graph, boxes: Mapping[_Key, _Box]) -> list[_Flow]:
    """Return the values of a graph, each with a line in the box of the kernel that writes it.

    There is one for all readers where it is certain that it is one.
    """
    flows: dict[tuple[_Key, str | int], _Flow] = {}
    for index, edge in enumerate(graph.edges):
        source, target = boxes[_key(edge.source)], boxes[_key(edge.target)]
        if source is target:
            source.texts.append(f"↻ {edge.value.text} to the next iteration")
            continue
        key = _key(edge.source), edge.value.text if _is_only(graph, edge) else index
        if key not in flows:
            if source.name == KERNEL:
                source.texts.append(f"→ {_label(edge.value)}")
            flows[key] = _Flow(source, len(source.texts) - 1)
        if all(box is not target for box, _ in flows[key].targets):
            flows[key].targets.append((target, target.ends))
            target.ends += 1
    return list(flows.values())


def _key(end: End) -> _Key:
    return (end.what, end.index)


def _is_only(graph: Graph, edge: Edge) -> bool:
    """Return whether the source of an edge has one value of its type."""
    if edge.source.what == PARAMETER:
        return True
    outputs = graph.kernels[edge.source.index].outputs
    return sum(value.text == edge.value.text for value in outputs) <= 1


def _stacked(boxes: Iterable[_Box]) -> tuple[list[tuple[int, str, float, float]], float]:
    """Place boxes below each other; return the loops and arms around them, and the height.

    Of each loop or arm that is its depth, its title, its upper and its lower edge.
    """
    y, frames = 0.0, list[tuple[int, str, float, float]]()
    opened: list[tuple[_Key, str, float]] = []

    def close(depth: int) -> None:
        nonlocal y
        while len(opened) > depth:
            _, title, top = opened.pop()
            frames.append((len(opened), title, top, y))
            y += _INSIDE

    for box in boxes:
        pairs = zip(opened, box.around, strict=False)
        differ = (at for at, (one, other) in enumerate(pairs) if one[0] != other[0])
        close(next(differ, min(len(opened), len(box.around))))
        for key, title in box.around[len(opened) :]:
            opened.append((key, title, y))
            y += _LINE + _INSIDE
        box.top = y
        y += box.height + _INSIDE
    close(0)
    return frames, y


def _lines(boxes: Mapping[_Key, _Box]) -> Iterator[tuple[_Box, str]]:
    for box in boxes.values():
        yield from ((box, text) for text in box.texts)


def _sides(box: _Box, edge: float) -> tuple[float, float]:
    """Return the left and the right edge of a box; `edge` is that of the outermost ones."""
    inset = len(box.around) * _INSIDE
    return inset, edge - inset


def _in_lanes(flows: Iterable[_Flow]) -> Iterator[tuple[int, _Flow]]:
    """Yield each value with its lane: short ones next to the boxes, none over another one."""
    lanes: list[list[tuple[float, float]]] = []
    for flow in sorted(flows, key=lambda flow: flow.span[1] - flow.span[0]):
        top, bottom = flow.span
        free = (at for at, of in enumerate(lanes) if all(b < top or bottom < a for a, b in of))
        lane = next(free, len(lanes))
        lanes += [[] for _ in range(lane + 1 - len(lanes))]
        lanes[lane].append((top, bottom))
        yield lane, flow


def _arrow(path: str) -> str:
    end = ' marker-end="url(#jaxsight-arrow)"'
    return f'<path class="edge" d="{path}" fill="none" stroke="{_DIM[0]}"{end}/>'


def _rect(name: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="4" fill="{_COLOURS[name][0]}" stroke="{_STROKE[0]}"/>'
    )


def _text(style: str, x: float, y: float, text: str) -> str:
    colour = _DIM[0] if style == "dim" else _INK[0]
    weight = ' font-weight="bold"' if style == "bold" else ""
    return (
        f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" fill="{colour}"{weight} '
        f'xml:space="preserve">{escape(text)}</text>'
    )
