"""A kernel graph as SVG: grey boxes for kernels, white ones for loops and arms, lines for values.

The picture is complete in itself, follows a dark theme, and has attributes for what programs that
know no style sheets make of it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from jaxsight.drawing.layered import LayeredBox, LayeredFlow, LayeredLayout, layout
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.text.layout import cut
from jaxsight.text.units import interval
from jaxsight.wire.kernel_graph import OUTPUT, PARAMETER, Edge, End, Graph, Kernel, Value

_MOST = 8
"""Operations in a kernel's box, a choice: fused loops have tens, and a taller box pushes the next
ones out of sight."""
_LONGEST = 44
"""Characters of a line in it, a choice: two boxes beside each other fit a page."""
_SIZE = 11
"""Of the letters, in pixels."""
_ADVANCE = 0.61 * _SIZE
"""Width of a letter: those of the fonts in `_FONT` have 0.55 to 0.602 of the size."""
_LINE = 14
_PADDING = 7
_MARGIN = 10
_INSIDE = 10
"""Around what is in a loop."""
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


def box_lines(index: int, kernel: Kernel, source: Source) -> list[str]:
    """Return what is written in the box of a kernel: its title, and what it computes."""
    launches = interval(kernel.launches, kernel.launches_at_most)
    lines = [f"{index + 1}: {kernel.title}{'' if launches == '1' else f' × {launches}'}"]
    texts = (" ".join(one_line(source(path)).split()) for path in kernel.equations)
    sources = list(dict.fromkeys(cut(text, _LONGEST) for text in texts))
    lines += sources[:_MOST]
    if len(sources) > _MOST:
        lines.append(f"… {len(sources) - _MOST} more")
    return lines


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
    named = inputs if len(inputs) == len(graph.parameters) else [""] * len(graph.parameters)
    root = _Region.tree(graph, source, named)
    places = root.places()
    wide, high = places.width + 2 * _MARGIN, places.height + 2 * _MARGIN
    scale = min(1.0, width / wide) if width else 1.0
    body = "".join(root.drawn(_MARGIN, _MARGIN))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="jaxsight-kernels" role="img" '
        f'width="{wide * scale:.0f}" height="{high * scale:.0f}" '
        f'viewBox="0 0 {wide:.0f} {high:.0f}" font-family="{_FONT}" font-size="{_SIZE}">'
        f"<title>{escape(one_line(title or graph.module))}</title><style>{_style()}</style>"
        f'<defs><marker id="jaxsight-arrow" viewBox="0 0 8 8" refX="7.5" refY="4" '
        f'markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0.5L8 4L0 7.5z" '
        f'class="tip" fill="{_DIM[0]}"/></marker></defs>'
        f'<rect class="ground" width="100%" height="100%" fill="{_COLOURS["ground"][0]}"/>'
        f"{body}</svg>"
    )


def _style() -> str:
    dark = {
        **{f".{name}": f"fill:{fill[1]}" for name, fill in _COLOURS.items()},
        ".edge": f"stroke:{_DIM[1]}",
        ".tip": f"fill:{_DIM[1]}",
        "rect:not(.ground)": f"stroke:{_STROKE[1]}",
        "text": f"fill:{_INK[1]}",
        "text.dim": f"fill:{_DIM[1]}",
        "text.title": f"fill:{_DIM[1]};stroke:{_COLOURS['loop'][1]}",
    }
    rules = " ".join(f".jaxsight-kernels {place}{{{rule}}}" for place, rule in dark.items())
    return f"@media (prefers-color-scheme: dark) {{ {rules} }}"


def _width(text: str) -> float:
    """Return the width of a text in pixels; East Asian letters are two wide."""
    return _ADVANCE * sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@dataclass(slots=True, eq=False)
class _Region:
    """A loop, an arm of a conditional, or the program: boxes, regions and the values in it.

    A value that enters or leaves it has a box without extent at its upper or lower edge.
    """

    key: Hashable = ()
    title: str = ""
    boxes: dict[Hashable, tuple[str, Sequence[str]]] = field(default_factory=dict)
    """The class and the texts of each, in the order of the program."""
    ranks: dict[Hashable, float] = field(default_factory=dict)
    inner: dict[Hashable, _Region] = field(default_factory=dict)
    ports: dict[tuple[str, Hashable], bool] = field(default_factory=dict)
    """Where values enter and leave (`in`, `out`), and whether that is at the upper edge."""
    flows: dict[Hashable, _Flow] = field(default_factory=dict)
    laid: LayeredLayout | None = None

    @staticmethod
    def tree(graph: Graph, source: Source, inputs: Sequence[str]) -> _Region:
        """Return the program as a region with all others inside."""
        root = _Region()
        around: dict[Hashable, list[_Region]] = {}
        for index, (value, name) in enumerate(zip(graph.parameters, inputs, strict=True)):
            texts = _texts(value, cut(one_line(name), _LONGEST))
            around[PARAMETER, index] = root._add((PARAMETER, index), -1.0, PARAMETER, texts)
        for index, kernel in enumerate(graph.kernels):
            region, chain = root, [root]
            loop = kernel.loops[-1] if kernel.loops else -1
            for key, title in reversed([*_regions(graph, loop, kernel.branch)]):
                region = region.inner.setdefault(key, _Region(key, title))
                chain[-1].ranks.setdefault(key, index)
                chain.append(region)
            key = ("kernel", index)
            carried = [e for e in graph.edges if _key(e.source) == _key(e.target) == key]
            lines = box_lines(index, kernel, source)
            lines += [f"↻ {edge.value.text} to the next iteration" for edge in carried]
            region._add(key, index, "kernel", lines)
            around[key] = chain
        for index, value in enumerate(graph.outputs):
            key = (OUTPUT, index)
            around[key] = root._add(key, float("inf"), OUTPUT, _texts(value))
        for flow in _flows(graph):
            root._route(flow, around)
        return root

    def _add(self, key: Hashable, rank: float, name: str, texts: Sequence[str]) -> list[_Region]:
        self.boxes[key] = (name, texts)
        self.ranks[key] = rank
        return [self]

    def _route(self, flow: _Flow, around: dict[Hashable, list[_Region]]) -> None:
        """Add a value to all regions that it is in, from its source to its readers."""
        chain = around[flow.source]
        for depth, region in enumerate(chain):
            outside = chain[depth + 1].key if depth + 1 < len(chain) else flow.source
            is_home = outside == flow.source
            targets: dict[Hashable, None] = {}
            for target in flow.targets:
                there = around[target]
                shared = sum(a is b for a, b in zip(chain, there, strict=False))
                if shared <= depth:
                    targets[region._port(flow, "out", is_top=flow.goes_back)] = None
                elif shared == depth + 1:
                    inside = there[depth + 1 :]
                    targets[inside[0].key if inside else target] = None
                    for level, inner in enumerate(inside):
                        following = inside[level + 1].key if level + 1 < len(inside) else target
                        entered = inner.flows.setdefault(
                            flow.key,
                            _Flow(flow.key, inner._port(flow, "in", is_top=not flow.goes_back), []),
                        )
                        entered.targets += [following] * (following not in entered.targets)
            if targets:
                text = flow.label if is_home else []
                region.flows[flow.key] = _Flow(flow.key, outside, list(targets), text)

    def _port(self, flow: _Flow, way: str, *, is_top: bool) -> Hashable:
        """Add the box without extent where a value enters or leaves, `in` or `out`."""
        key = (way, flow.key)
        self.ports[key] = is_top
        self.ranks[key] = -1.0 if is_top else float("inf")
        return key

    def places(self) -> LayeredLayout:
        """Return where everything in it is."""
        if self.laid is None:
            boxes = [self._box(key) for key in sorted(self.ranks, key=self.ranks.__getitem__)]
            flows = [
                LayeredFlow(
                    flow.key,
                    flow.source,
                    tuple(flow.targets),
                    max((_width(text) + 4 for text in flow.label), default=0.0),
                    len(flow.label) * _LINE,
                )
                for flow in self.flows.values()
            ]
            self.laid = layout(boxes, flows)
        return self.laid

    def _box(self, key: Hashable) -> LayeredBox:
        rank = self.ranks[key]
        region = self.inner.get(key)
        if region is not None:
            width, height = region.extent()
            entries = {flow: x for (way, flow), x in region.crossings() if way == "in"}
            exits = {flow: x for (way, flow), x in region.crossings() if way == "out"}
            return LayeredBox(key, width, height, rank, entries, exits)
        if key not in self.boxes:
            return LayeredBox(key, 0.0, 0.0, rank, is_first=rank < 0, is_last=rank > 0)
        name, texts = self.boxes[key]
        width = max(map(_width, texts), default=0.0) + 2 * _PADDING
        height = len(texts) * _LINE + _PADDING
        return LayeredBox(key, width, height, rank, is_last=name == OUTPUT)

    def extent(self) -> tuple[float, float]:
        """Return the width and height of its box, with its title."""
        places = self.places()
        width = max(places.width, _width(self.title)) + 2 * _INSIDE
        return width, places.height + 2 * _INSIDE + _LINE

    def crossings(self) -> Iterator[tuple[tuple[str, Hashable], float]]:
        """Yield the values that enter and leave it, with the place from the left edge."""
        for key in self.ports:
            yield key, self.places().boxes[key][0] + _INSIDE

    def drawn(self, x: float, y: float) -> Iterator[str]:
        """Yield the SVG of everything in it, with its upper left corner at a point."""
        places = self.places()
        yield f'<g transform="translate({x:.1f} {y:.1f})">'
        for key, (left, top) in places.boxes.items():
            region = self.inner.get(key)
            if region is not None:
                width, height = region.extent()
                yield _rect("loop", left, top, width, height)
                for port, along in region.crossings():
                    begin, end = 0.0, float(_INSIDE + _LINE)
                    if not region.ports[port]:
                        begin, end = height - _INSIDE, height
                    yield _path(f"M{left + along:.1f} {top + begin:.1f}V{top + end:.1f}")
                yield _text("title", left + _INSIDE, top + _LINE, region.title)
                yield from region.drawn(left + _INSIDE, top + _INSIDE + _LINE)
        for _, path, has_arrow in places.lines:
            yield _path(path, has_arrow=has_arrow)
        for key, (left, top) in places.boxes.items():
            if key not in self.boxes:
                continue
            name, texts = self.boxes[key]
            box = self._box(key)
            yield _rect(name, left, top, box.width, box.height)
            for line, text in enumerate(texts, 1):
                style = "bold" if line == 1 and name == "kernel" else ""
                yield _text(style, left + _PADDING, top + line * _LINE, text)
        for key, (left, top) in places.labels:
            for line, text in enumerate(self.flows[key].label, 1):
                yield _text("dim", left + 2, top + line * _LINE - 3, text)
        yield "</g>"


@dataclass(slots=True)
class _Flow:
    """A value in a region: where it is from, and what reads it."""

    key: Hashable
    source: Hashable
    targets: list[Hashable]
    label: Sequence[str] = ()
    goes_back: bool = False
    """Whether it is for the next iteration, from a kernel to one above it."""


def _flows(graph: Graph) -> Iterable[_Flow]:
    """Return the values of a graph; one for all readers where it is certain that it is one."""
    flows: dict[Hashable, _Flow] = {}
    for index, edge in enumerate(graph.edges):
        if _key(edge.source) == _key(edge.target):
            continue
        goes_back = edge.source.what == edge.target.what and edge.source.index > edge.target.index
        value = edge.value.text if _is_only(graph, edge) else index
        key: Hashable = (_key(edge.source), value, goes_back)
        label = [edge.value.text, units.size(edge.value.bytes)]
        flow = flows.setdefault(key, _Flow(key, _key(edge.source), [], label, goes_back))
        if _key(edge.target) not in flow.targets:
            flow.targets.append(_key(edge.target))
    return flows.values()


def _is_only(graph: Graph, edge: Edge) -> bool:
    """Return whether the source of an edge has one value of its type."""
    if edge.source.what == PARAMETER:
        return True
    outputs = graph.kernels[edge.source.index].outputs
    return sum(value.text == edge.value.text for value in outputs) <= 1


def _regions(graph: Graph, loop: int, branch: int) -> Iterator[tuple[Hashable, str]]:
    """Yield the loops and arms around a kernel with their titles, innermost first."""
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


def _texts(value: Value, name: str = "") -> list[str]:
    return [f"{name}: {value.text}" if name else value.text, units.size(value.bytes)]


def _key(end: End) -> tuple[str, int]:
    return (end.what, end.index)


def _path(path: str, *, has_arrow: bool = False) -> str:
    arrow = ' marker-end="url(#jaxsight-arrow)"' if has_arrow else ""
    return f'<path class="edge" d="{path}" fill="none" stroke="{_DIM[0]}"{arrow}/>'


def _rect(name: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="4" fill="{_COLOURS[name][0]}" stroke="{_STROKE[0]}"/>'
    )


def _text(style: str, x: float, y: float, text: str) -> str:
    colour = _DIM[0] if style in ("dim", "title") else _INK[0]
    weight = ' font-weight="bold"' if style == "bold" else ""
    halo = ""
    if style == "title":  # values that enter a loop may cross its title
        halo = f' stroke="{_COLOURS["loop"][0]}" stroke-width="4" paint-order="stroke"'
    return (
        f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" fill="{colour}"{weight}{halo} '
        f'xml:space="preserve">{escape(text)}</text>'
    )
