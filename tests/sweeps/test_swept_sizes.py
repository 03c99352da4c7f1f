"""Which sizes a sweep has."""

from __future__ import annotations

import pytest

from jaxsight.sweeps.points import BadSizes, SweptSize, combined, parse, swept_size


@pytest.mark.parametrize(
    ("text", "values", "step"),
    [
        ("n=1..9", (1, 2, 3, 4, 5, 6, 7, 8, 9), 1),
        ("B=1..64", (1, 2, 4, 8, 16, 32, 64), 1),
        ("B=0..100", (0, 1, 2, 4, 8, 16, 32, 64, 100), 1),
        ("B=3..100", (3, 6, 12, 24, 48, 96, 100), 1),
        ("L=256,128,128", (128, 256), 1),
        ("L=8..64:8", (8, 16, 24, 32, 40, 48, 56, 64), 8),
        ("L=8..1000:8", (8, 16, 32, 64, 128, 256, 512, 1000), 8),
        ("L=1..4, 64", (1, 2, 3, 4, 64), 1),
        ("d_model=7", (7,), 1),
    ],
)
def test_values_of_a_range_are_all_or_doubled(
    text: str, values: tuple[int, ...], step: int
) -> None:
    found = parse(text)
    assert found is not None
    assert (found.values, found.step) == (values, step)


@pytest.mark.parametrize(
    "text", ["B=", "B=1..", "B=9..1", "B=x", "B=-1", "B=1..8:0", "B=1.5", "B=" + "9" * 40]
)
def test_invalid_values_are_one_clear_message(text: str) -> None:
    with pytest.raises(BadSizes, match="invalid sizes"):
        parse(text)


@pytest.mark.parametrize("text", ["model.py:f", "a/b=c.py:f", "=3", "3=4"])
def test_what_assigns_to_no_name_is_no_size(text: str) -> None:
    assert parse(text) is None


def test_sizes_in_python_are_ranges_and_lists() -> None:
    assert swept_size("n", range(1, 10)) == SweptSize("n", tuple(range(1, 10)))
    assert swept_size("B", range(16, 1025, 16)) == SweptSize(
        "B", (16, 32, 64, 128, 256, 512, 1024), 16
    )
    assert swept_size("n", [4, 2, 2]) == SweptSize("n", (2, 4))
    assert swept_size("n", 3) == SweptSize("n", (3,))


@pytest.mark.parametrize("values", [[], [1.5], [-1], ["a"], range(0), range(5, 1, -1)][:5])
def test_sizes_in_python_are_whole_numbers(values: list[object]) -> None:
    with pytest.raises(BadSizes, match="invalid sizes for n"):
        swept_size("n", values)  # type: ignore[arg-type]


def test_the_first_size_varies_fastest() -> None:
    swept = [SweptSize("B", (1, 2)), SweptSize("L", (128, 256))]
    assert combined(swept) == [
        {"B": 1, "L": 128},
        {"B": 2, "L": 128},
        {"B": 1, "L": 256},
        {"B": 2, "L": 256},
    ]


def test_a_sweep_has_few_points_and_each_size_once() -> None:
    with pytest.raises(BadSizes, match="100 points is too long"):
        combined([SweptSize("B", tuple(range(10))), SweptSize("L", tuple(range(10)))])
    with pytest.raises(BadSizes, match="B is swept twice"):
        combined([SweptSize("B", (1,)), SweptSize("B", (2,))])
