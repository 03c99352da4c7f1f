"""A fix that makes a figure of the target worse: which one it is."""

from __future__ import annotations

import pytest

from jaxsight.compiler.protocol import Compiled, Folding, Memory
from jaxsight.engine.fixes import effects
from jaxsight.engine.fixes.effects import Figures
from tests.compiler.estimate_cases import graph, text


def figures(case: str, temporaries: int = 0, folding: Folding | None = None) -> Figures:
    memory = Memory(temporaries, 0, 0, 0, 0, 0)
    found = graph("cuda:h100", case)
    hlo = text("cuda:h100", case)
    compiled = Compiled(1, "cuda:h100", "ahead of time", found, memory, hlo, seconds=0.1)
    return Figures(equations=1, constants=0, compiled=compiled, folding=folding)


@pytest.mark.parametrize(
    ("before", "after", "worse"),
    [
        (figures("f32"), figures("f32"), set()),
        (figures("f32"), figures("f32_highest"), {"time"}),
        (figures("f32_highest"), figures("f32"), set()),
        (figures("doubled"), figures("doubled", 4096), {"stored"}),
        (figures("gathered"), figures("doubled"), {"moved", "time"}),
        (figures("gathered"), figures("row_by_row"), {"launched", "moved", "time"}),
    ],
)
def test_what_is_worse_is_named(before: Figures, after: Figures, worse: set[str]) -> None:
    assert effects.worse(before, after) == worse


def test_a_longer_time_is_in_the_title() -> None:
    words = list(effects.words(figures("f32"), figures("f32_highest"), timed=False))
    assert words == ["≈ time 280.8 µs → 2.06 ms"]
    assert list(effects.words(figures("f32_highest"), figures("f32"), timed=False)) == []


@pytest.mark.parametrize(
    ("folding", "words"),
    [
        (Folding(12.0, 0.2), ["compile 12 s → 0.1 s"]),
        (Folding(15.0, 0.2, is_ended=True), ["compile > 15 s → 0.1 s"]),
        (None, []),
    ],
)
def test_a_title_has_the_seconds_that_were_measured(
    folding: Folding | None, words: list[str]
) -> None:
    assert list(effects.words(figures("f32", 0, folding), figures("f32"), timed=True)) == words
