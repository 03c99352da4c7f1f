"""Curves as SVG: well-formed, of one file, with all points, and nothing of the user's as markup."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from jaxsight.sweeps.picture import svg
from jaxsight.sweeps.points import LargestSize, Sweep, SweepPoint, SweptSize
from jaxsight.sweeps.table import FIGURES
from tests.sweeps.examples import KIB, point, sweep_of

NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(*sweeps: Sweep, figure: str = "temp") -> ElementTree.Element:
    return ElementTree.fromstring(svg(sweeps, FIGURES[figure]))


def texts(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{NAMESPACE}text")]


def places(picture: ElementTree.Element) -> list[tuple[float, float]]:
    circles = picture.iter(f"{NAMESPACE}circle")
    return [(float(circle.attrib["cx"]), float(circle.attrib["cy"])) for circle in circles]


def test_a_curve_for_each_function_with_a_mark_at_each_point() -> None:
    picture = drawn(sweep_of(lambda n: n * KIB), sweep_of(lambda n: KIB, function="barriers"))
    lines = [*picture.iter(f"{NAMESPACE}polyline")]
    assert [len(line.attrib["points"].split()) for line in lines] == [4, 4]
    assert {"loop", "barriers", "n", "temporary memory over n, cuda:h100"} <= {*texts(picture)}
    assert len({line.attrib["stroke"] for line in lines}) == 2
    first, second = places(picture)[:4], places(picture)[4:]
    assert [x for x, _ in first] == [x for x, _ in second]
    assert first == sorted(first, key=lambda place: (place[0], -place[1]))
    assert len({y for _, y in second}) == 1


def test_the_title_names_the_only_function_and_each_point_has_its_value() -> None:
    picture = drawn(sweep_of(lambda n: n * KIB))
    titles = [element.text for element in picture.iter(f"{NAMESPACE}title")]
    assert titles[0] == "loop: temporary memory over n, cuda:h100"
    assert titles[1:] == [
        "loop: n=1: 1 KiB",
        "loop: n=2: 2 KiB",
        "loop: n=3: 3 KiB",
        "loop: n=4: 4 KiB, other kernels than before",
    ]
    assert "○ XLA makes other kernels than with the size before" in texts(picture)


def test_doubled_sizes_are_at_equal_distances() -> None:
    values = [2**exponent for exponent in range(13)]
    found = places(drawn(sweep_of(lambda n: n * KIB, values)))
    runs = {round(right[0] - left[0]) for left, right in pairwise(found)}
    rises = {round(left[1] - right[1]) for left, right in pairwise(found)}
    assert (len(runs), len(rises)) == (1, 1)


@pytest.mark.parametrize("figure", [name for name in FIGURES if name != "measured"])
def test_every_figure_can_be_drawn(figure: str) -> None:
    picture = drawn(sweep_of(lambda n: n * KIB), figure=figure)
    assert texts(picture)[0] == f"loop: {FIGURES[figure].title} over n, cuda:h100"


def test_one_point_and_figures_that_are_zero_can_be_drawn() -> None:
    assert len(places(drawn(sweep_of(lambda n: 0, (7,))))) == 1


def test_a_curve_is_interrupted_where_nothing_was_compiled() -> None:
    points = [point(n, KIB) if n != 3 else SweepPoint({"n": 3}, "no") for n in (1, 2, 3, 4, 5)]
    sweep = Sweep("f", "cpu", (SweptSize("n", (1, 2, 3, 4, 5)),), tuple(points))
    lines = drawn(sweep).iter(f"{NAMESPACE}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [2, 2]


def test_a_figure_that_no_point_has_is_not_drawn() -> None:
    sweep = Sweep("f", "cpu", (SweptSize("n", (1,)),), (SweepPoint({"n": 1}, "no"),))
    with pytest.raises(LookupError, match="no point has a known temporary memory"):
        svg([sweep], FIGURES["temp"])


def test_other_sizes_are_curves_of_their_own() -> None:
    points = tuple(point(n, n * side, L=side) for side in (128, 256) for n in (1, 2))
    sweep = Sweep("f", "cpu", (SweptSize("n", (1, 2)), SweptSize("L", (128, 256))), points)
    assert {"L=128", "L=256"} <= {*texts(drawn(sweep))}


def test_the_largest_size_is_a_line_if_it_is_in_the_picture() -> None:
    def limits(size: int) -> int:
        largest = LargestSize("n", size, 80 * 2**30, is_exact=True)
        picture = drawn(sweep_of(lambda n: n * KIB, largest=(largest,)))
        return len(
            [e for e in picture.iter(f"{NAMESPACE}line") if e.attrib.get("class") == "limit"]
        )

    assert (limits(3), limits(5000)) == (1, 0)


def test_names_are_text_and_the_picture_reads_no_other_file() -> None:
    text = svg([sweep_of(lambda n: KIB, function="<script>&\u202e\"'")], FIGURES["temp"])
    assert "<script" not in text
    assert "\u202e" not in text
    urls = re.findall(r"https?://[^\"]+", text)
    assert urls == ["http://www.w3.org/2000/svg"]
