"""Figures are written in the same way everywhere."""

from __future__ import annotations

import pytest

from jaxsight.text import units


@pytest.mark.parametrize(
    ("bytes", "text"),
    [
        (-1, "?"),
        (0, "0 B"),
        (513, "513 B"),
        (2**19, "512 KiB"),
        (3 * 2**19, "1.5 MiB"),
        (2**30, "1 GiB"),
        (2**20 - 1, "1 MiB"),
    ],
)
def test_sizes_are_written_with_binary_units(bytes: int, text: str) -> None:
    assert units.size(bytes) == text


@pytest.mark.parametrize(
    ("text", "bytes"),
    [
        ("4 MiB", 2**22),
        ("4mib", 2**22),
        (" 512 ", 512),
        ("1.5 kB", 1500),
        ("4 MX", None),
        ("", None),
    ],
)
def test_sizes_are_parsed_in_any_case(text: str, bytes: float | None) -> None:
    assert units.parse_size(text) == bytes


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1e-9, "< 0.1 µs"), (3.6e-6, "3.6 µs"), (0.334, "334 ms"), (2.0, "2.00 s")],
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert units.time(seconds) == text


def test_nouns_are_in_the_plural_unless_there_is_one() -> None:
    assert units.count(1, "fix", "fixes") == "1 fix"
    assert units.count(2, "fix", "fixes") == "2 fixes"
    assert units.count(0, "finding") == "0 findings"
