"""Hints stay within the width of the setting, and what is cut is marked and never half a figure."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxsight.features.inlay_hints.kind import LabelPart, fitted, listed
from tests.sessions import session_without_spare

FIGURES = [
    LabelPart("▣ 9 kernels", 0),
    LabelPart("12 launches"),
    LabelPart("temp 12.9 KiB", 4),
    LabelPart("2 collectives, 128 KiB", 5, ("2 collectives",)),
    LabelPart("cpu", 0),
]


@pytest.mark.parametrize(
    ("width", "label"),
    [
        (90, "▣ 9 kernels · 12 launches · temp 12.9 KiB · 2 collectives, 128 KiB · cpu"),
        (60, "▣ 9 kernels · 12 launches · temp 12.9 KiB · cpu …"),
        (68, "▣ 9 kernels · 12 launches · temp 12.9 KiB · 2 collectives · cpu …"),
        (40, "▣ 9 kernels · 12 launches · cpu …"),
        (20, "▣ 9 kernels · cpu …"),
        (1, "▣ 9 kernels · cpu …"),
    ],
)
def test_the_least_important_figures_go_first(width: int, label: str) -> None:
    assert fitted(FIGURES, width) == label


@pytest.mark.parametrize(
    ("width", "label"),
    [
        (60, "⊣ fft, layout change, scan · step"),
        (32, "⊣ fft, layout change … · step"),
        (16, "⊣ fft … · step"),
        (12, "⊣ fft …"),
    ],
)
def test_a_list_keeps_its_first_entry_and_then_its_function(width: int, label: str) -> None:
    assert listed("⊣ ", ["fft", "layout change", "scan"], ["step"], width) == label


@given(
    st.lists(st.tuples(st.integers(1, 9**9), st.integers(0, 5)), min_size=1, max_size=6),
    st.integers(1, 60),
)
def test_a_figure_is_shown_whole_or_not_at_all(parts: list[tuple[int, int]], width: int) -> None:
    label = fitted([LabelPart(str(figure), rank) for figure, rank in parts], width)
    shown = label.removesuffix(" …").split(" · ")
    assert [text for text in shown if text] == [
        text for text in shown if text in {str(figure) for figure, _ in parts}
    ]
    assert label.endswith("…") or len(shown) == len(parts)
    must = [str(figure) for figure, rank in parts if rank == 0]
    assert len(label) <= max(width, len(" · ".join(must)) + 2)


SOURCE = """\
def step(w, x):
    \"\"\"Update a layer.

    Example inputs:
        w: {'kernel': f32[1024,1024], 'bias': f32[1024], 'scale': f32[1024]}
        x: f32[1024,1024]
    \"\"\"
    layer = {'first': w, 'second': {'kernel': w['kernel'] * 2, 'bias': w['bias']}}
    pair = (x, x * 2, x @ w['kernel'], x + w['bias'])
    return layer, pair
"""


@pytest.mark.parametrize("width", [20, 40, 200])
async def test_hints_of_a_file_are_as_wide_as_the_setting(tmp_path: Path, width: int) -> None:
    session = session_without_spare()
    hints = {"width": width, "sizeNames": False}
    settings = {"python": sys.executable, "target": "cpu", "inlayHints": hints}
    session.configure([str(tmp_path)], settings)
    path = str(tmp_path / "model.py")
    session.open(path, SOURCE)
    shown = await session.hints(path, wait=True)
    await session.aclose()
    assert any(hint.label.startswith("▣") for hint in shown)
    assert max(len(hint.label) for hint in shown) <= width
    whole = "(f32[1024,1024], f32[1024,1024], f32[1024,1024], f32[1024,1024])"
    (pair,) = [hint for hint in shown if whole in hint.tooltip]
    assert (
        pair.label
        == {
            20: ": (…)",
            40: ": (f32[1024,1024], f32[1024,1024], …)",
            200: f": {whole}",
        }[width]
    )
    (totals,) = [hint for hint in shown if hint.label.startswith("▣")]
    assert "kernels" in totals.label
    assert "cpu" in totals.label


SKIPPED = """\
SCALE = {}
SCALE.update(a=2.0)  # jaxsight: never


def scaled(x):
    \"\"\"Scale.

    Example inputs:
        x: f32[4]
    \"\"\"
    return x * SCALE.get('a', 1.0)
"""


async def test_caveats_stand_beside_kernels_and_never_in_their_place(tmp_path: Path) -> None:
    session = session_without_spare()
    settings = {"python": sys.executable, "target": "cpu"}
    session.configure([str(tmp_path)], settings)
    path = str(tmp_path / "model.py")
    session.open(path, SKIPPED)
    labels: set[str] = set()
    while not any("kernel" in label for label in labels):
        hints = {hint.label: hint for hint in await session.hints(path)}
        labels |= hints.keys()
        await session.events.get()
    await session.aclose()
    assert not any(label.startswith("⚠") for label in labels)
    (totals,) = [label for label in hints if label.startswith("▣")]
    assert totals.endswith("cpu · ⚠ 1")
    assert "* line 2: `SCALE.update(a=2.0)` was not run" in hints[totals].tooltip
