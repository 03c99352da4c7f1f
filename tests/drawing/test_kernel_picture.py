"""Kernel graphs are drawn as SVG, without any other program."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree

from jaxsight.drawing.kernel_picture import svg
from jaxsight.wire.kernel_graph import Branch, Edge, End, Graph, Kernel, Loop, Value

BIG, SMALL = Value("f32[131072,2]", "1,0", 1 << 20), Value("s32[]", "", 4)
NAME = "{http://www.w3.org/2000/svg}"


def kernel(name: str, *equations: str, **facts: object) -> Kernel:
    return Kernel(name, "fusion", "loop fusion", "output", equations, outputs=(BIG,), **facts)  # type: ignore[arg-type]


def edge(source: tuple[str, int], target: tuple[str, int], value: Value = BIG) -> Edge:
    return Edge(End(*source), End(*target), value)  # type: ignore[arg-type]


LOOPED = Graph(
    "jit_f",
    (
        kernel("first", "0"),
        kernel("body", "1/body/0", loops=(0,), launches=4),
        kernel("arm", "1/body/1/branches0/0", loops=(0,), branch=0),
        kernel("other", "1/body/1/branches1/0", loops=(0,), branch=1),
        kernel("last", "2"),
    ),
    (
        edge(("parameter", 0), ("kernel", 0)),
        edge(("kernel", 0), ("kernel", 1)),
        edge(("kernel", 1), ("kernel", 1), SMALL),
        edge(("kernel", 1), ("kernel", 2)),
        edge(("kernel", 1), ("kernel", 3)),
        edge(("kernel", 2), ("kernel", 1)),
        edge(("kernel", 3), ("kernel", 4)),
        edge(("kernel", 4), ("output", 0)),
    ),
    loops=(Loop("while.5", 4),),
    branches=(Branch("cond.1", 0, 2, loop=0), Branch("cond.1", 1, 2, loop=0)),
    parameters=(BIG,),
    outputs=(BIG,),
)


def texts(drawing: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(drawing).iter(f"{NAME}text")]


def boxes(drawing: str, name: str) -> list[tuple[float, float, float, float]]:
    """The boxes of a class as left, top, right and bottom, in the whole picture."""
    found: list[tuple[float, float, float, float]] = []

    def walk(element: ElementTree.Element, x: float, y: float) -> None:
        if moved := re.match(r"translate\(([\d.-]+) ([\d.-]+)\)", element.get("transform", "")):
            x, y = x + float(moved[1]), y + float(moved[2])
        if element.tag == f"{NAME}rect" and element.get("class") == name:
            left, top = x + float(element.attrib["x"]), y + float(element.attrib["y"])
            width, height = float(element.attrib["width"]), float(element.attrib["height"])
            found.append((left, top, left + width, top + height))
        for child in element:
            walk(child, x, y)

    walk(ElementTree.fromstring(drawing), 0.0, 0.0)
    return found


def test_kernels_are_in_the_boxes_of_their_loops_and_arms() -> None:
    drawing = svg(LOOPED, lambda path: f"at {path}")
    assert {"while.5 × 4", "arm 1 of 2", "arm 2 of 2"} <= set(texts(drawing))
    kernels, loops = boxes(drawing, "kernel"), boxes(drawing, "loop")
    assert (len(kernels), len(loops)) == (5, 3)

    def around(inner: tuple[float, float, float, float]) -> int:
        return sum(
            left <= inner[0] and top <= inner[1] and inner[2] <= right and inner[3] <= bottom
            for left, top, right, bottom in loops
        )

    assert sorted(map(around, kernels)) == [0, 0, 1, 2, 2]


def test_boxes_have_the_source_and_lines_the_sizes_of_values() -> None:
    shown = texts(svg(LOOPED, lambda path: f"at {path}"))
    # An input, a result, and of each kernel a value, which all of its readers have.
    assert sum(text.endswith("f32[131072,2] 1 MiB") for text in shown) == 7
    assert {"at 1/body/0", "2: loop fusion × 4", "↻ s32[] to the next iteration"} <= set(shown)


def test_lines_lead_from_box_to_box_and_not_over_each_other() -> None:
    drawing = svg(LOOPED, str)
    paths = [each.get("d", "") for each in ElementTree.fromstring(drawing).iter(f"{NAME}path")]
    lines = [tuple(map(float, re.findall(r"[\d.]+", path))) for path in paths if "V" in path]
    assert len(lines) == 7
    rights = {
        right
        for name in ("kernel", "parameter", "output")
        for _, _, right, _ in boxes(drawing, name)
    }
    assert {line[0] + 10 for line in lines} | {line[4] + 10 for line in lines} <= rights
    for (_, a, x, b, _), (_, c, z, d, _) in combinations(lines, 2):
        same_value = a == c
        assert same_value or x != z or max(a, b) < min(c, d) or max(c, d) < min(a, b)


def test_inputs_have_their_names() -> None:
    names = [f"params['w{index}']" for index in range(len(LOOPED.parameters))]
    drawn = texts(svg(LOOPED, str, inputs=names))
    assert [text for text in drawn if "params" in text] == [
        f"{name}: {value.text} 1 MiB" for name, value in zip(names, LOOPED.parameters, strict=True)
    ]
    assert texts(svg(LOOPED, str, inputs=[*names, "one more"])) == texts(svg(LOOPED, str))


def test_a_box_has_few_lines() -> None:
    many = kernel("many", *map(str, range(30)))
    shown = texts(svg(Graph("jit_f", (many,)), lambda path: f"x + {path}" + " " * 50 + "y" * 90))
    assert shown[-1] == "… 22 more"
    assert max(map(len, shown)) <= 44


def test_text_of_programs_is_inert() -> None:
    drawing = svg(LOOPED, lambda path: "<script>alert(1)</script>\u202e&\"'", title="<b>\x1b")
    assert "<script" not in drawing
    assert "\u202e" not in drawing
    assert "\x1b" not in drawing
    urls = re.findall(r"https?://[^\"]*", drawing)
    assert urls == ["http://www.w3.org/2000/svg"]
    ElementTree.fromstring(drawing)


def test_a_picture_is_no_wider_than_wanted_and_follows_dark_themes() -> None:
    natural = ElementTree.fromstring(svg(LOOPED, str))
    narrow = ElementTree.fromstring(svg(LOOPED, str, width=200))
    assert (narrow.get("width"), narrow.get("viewBox")) == ("200", natural.get("viewBox"))
    assert ElementTree.fromstring(svg(LOOPED, str, width=9999)).get("width") == natural.get("width")
    assert "prefers-color-scheme: dark" in svg(LOOPED, str)


def test_a_program_without_kernels_has_a_picture() -> None:
    identity = Graph(
        "jit_f", (), (edge(("parameter", 0), ("output", 0)),), parameters=(BIG,), outputs=(BIG,)
    )
    assert texts(svg(identity, str)).count("f32[131072,2] 1 MiB") == 2
    ElementTree.fromstring(svg(Graph("jit_f", ()), str))
