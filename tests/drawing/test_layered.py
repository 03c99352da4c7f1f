"""Boxes and labels have places where none covers another one, and lines lead from box to box."""

from __future__ import annotations

import re
from itertools import combinations, groupby

from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsight.drawing.layered import LayeredBox, LayeredFlow, LayeredLayout, layout

Rectangle = tuple[float, float, float, float]

sizes = st.tuples(st.integers(1, 300), st.integers(1, 90))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[LayeredBox], list[LayeredFlow]]:
    """Boxes in the order of a program, and values forward, backward and to themselves."""
    number = draw(st.integers(1, 12))
    boxes = [LayeredBox(index, *draw(sizes), index) for index in range(number)]
    indices = st.integers(0, number - 1)
    flows = [
        LayeredFlow(f"v{index}", source, tuple(targets), *draw(sizes))
        for index, (source, targets) in enumerate(
            draw(
                st.lists(
                    st.tuples(indices, st.lists(indices, min_size=1, max_size=4, unique=True)),
                    max_size=20,
                )
            )
        )
    ]
    return boxes, flows


def rectangles(
    boxes: list[LayeredBox], flows: list[LayeredFlow], places: LayeredLayout
) -> list[Rectangle]:
    """All boxes and labels, as their left, top, right and bottom."""
    size = {flow.key: (flow.width, flow.height) for flow in flows}
    there = [(places.boxes[box.key], (box.width, box.height)) for box in boxes]
    there += [(corner, size[key]) for key, corner in places.labels]
    return [(x, y, x + width, y + height) for (x, y), (width, height) in there]


def overlap(a: Rectangle, b: Rectangle) -> bool:
    return min(a[2], b[2]) > max(a[0], b[0]) + 0.01 and min(a[3], b[3]) > max(a[1], b[1]) + 0.01


@settings(max_examples=30)
@given(graphs())
def test_no_box_or_label_covers_another_one(
    graph: tuple[list[LayeredBox], list[LayeredFlow]],
) -> None:
    places = layout(*graph)
    all_there = rectangles(*graph, places)
    assert not [pair for pair in combinations(all_there, 2) if overlap(*pair)]
    assert min(x for x, _, _, _ in all_there) >= -0.01
    assert max(right for _, _, right, _ in all_there) <= places.width + 3
    assert max(bottom for _, _, _, bottom in all_there) <= places.height + 0.01


@settings(max_examples=30)
@given(graphs())
def test_every_value_has_a_line_with_an_arrow_for_each_reader(
    graph: tuple[list[LayeredBox], list[LayeredFlow]],
) -> None:
    boxes, flows = graph
    places = layout(boxes, flows)
    extent = {box.key: (places.boxes[box.key], box.width, box.height) for box in boxes}
    for flow in flows:
        ends = [
            _end(path) for key, path, has_arrow in places.lines if key == flow.key and has_arrow
        ]
        readers = [target for target in flow.targets if target != flow.source]
        assert len(ends) == len(readers)
        for reader in readers:
            (x, y), width, height = extent[reader]
            assert any(
                x - 0.1 <= end_x <= x + width + 0.1
                and min(abs(end_y - y), abs(end_y - y - height)) < 0.1
                for end_x, end_y in ends
            )


def _end(path: str) -> tuple[float, float]:
    """The point that a path of `M`, `V` and `C` ends at."""
    x = y = 0.0
    for command, numbers in re.findall(r"([MVC])([^MVC]*)", path):
        values = [float(number) for number in numbers.split()]
        if command == "V":
            y = values[-1]
        else:
            x, y = values[-2:]
    return x, y


def test_a_chain_is_a_straight_line() -> None:
    boxes = [LayeredBox(index, 40 + 20 * (index % 3), 20, index) for index in range(6)]
    flows = [LayeredFlow(index, index, (index + 1,), 30, 10) for index in range(5)]
    places = layout(boxes, flows)
    middles = {round(places.boxes[box.key][0] + box.width / 2) for box in boxes}
    assert max(middles) - min(middles) <= 1


def test_a_tree_has_no_crossings() -> None:
    boxes = [LayeredBox(index, 30, 20, index) for index in range(15)]
    flows = [LayeredFlow(index, (index - 1) // 2, (index,)) for index in reversed(range(1, 15))]
    places = layout(boxes, flows)
    for depth in (1, 2):  # siblings are beside each other, and so are their parents
        row = sorted(range(7, 15), key=lambda index: places.boxes[index][0])
        for _ in range(depth):
            row = [(index - 1) // 2 for index in row]
        assert len(list(groupby(row))) == len(set(row))


def test_a_program_of_many_kernels_is_placed() -> None:
    boxes = [LayeredBox(index, 120, 40, index) for index in range(300)]
    flows = [
        LayeredFlow((index, back), index - back, (index,), 60, 28)
        for index in range(40, 300)
        for back in (1, 7)
    ]
    places = layout(boxes, flows)
    assert len(places.boxes) == 300
    assert len(places.labels) == len(flows)
