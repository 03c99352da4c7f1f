"""A fix that makes a figure of the target worse: which one it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.figures import FormCosts
from jaxsight.wire.messages.compiling import Compiled, Folding, Memory
from tests.compiler.estimate_cases import graph, text


def figures_of(case: str, temporaries: int = 0, folding: Folding | None = None) -> FormCosts:
    memory = Memory(temporaries, 0, 0, 0, 0, 0)
    found = graph("cuda:h100", case)
    hlo = text("cuda:h100", case)
    compiled = Compiled(1, "cuda:h100", "ahead of time", found, memory, hlo, seconds=0.1)
    return FormCosts(equations=1, constants=0, compiled=compiled, folding=folding)


@pytest.mark.parametrize(
    ("before", "after", "worse"),
    [
        (figures_of("f32"), figures_of("f32"), set()),
        (figures_of("f32"), figures_of("f32_highest"), {"time"}),
        (figures_of("f32_highest"), figures_of("f32"), set()),
        (figures_of("doubled"), figures_of("doubled", 4096), {"stored"}),
        (figures_of("gathered"), figures_of("doubled"), {"moved", "time"}),
        (figures_of("gathered"), figures_of("row_by_row"), {"launched", "moved", "time"}),
    ],
)
def test_what_is_worse_is_named(before: FormCosts, after: FormCosts, worse: set[str]) -> None:
    assert figures.worse(before, after) == worse


def test_a_longer_time_is_in_the_title() -> None:
    words = list(figures.words(figures_of("f32"), figures_of("f32_highest"), timed=False))
    assert words == ["≈ time 340 µs → 2.63 ms"]
    assert list(figures.words(figures_of("f32_highest"), figures_of("f32"), timed=False)) == []


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
    assert (
        list(figures.words(figures_of("f32", 0, folding), figures_of("f32"), timed=True)) == words
    )


def on_a_cpu(case: str) -> FormCosts:
    """The figures of kernels for which no time is estimated."""
    found = figures_of(case)
    assert found.compiled is not None
    return replace(found, compiled=replace(found.compiled, target="cpu"))


@pytest.mark.parametrize(
    ("before", "after", "slow"),
    [
        (
            figures_of("f32"),
            figures_of("f32_highest"),
            True,
        ),  # 7 times as long, by as many launches
        (figures_of("f32_highest"), figures_of("f32"), False),
        (on_a_cpu("f32"), on_a_cpu("f32_highest"), False),
        (on_a_cpu("gathered"), on_a_cpu("row_by_row"), True),
        (on_a_cpu("row_by_row"), on_a_cpu("gathered"), False),
        (figures_of("f32"), replace(figures_of("f32"), compiled=None), False),
    ],
)
def test_a_trade_has_a_limit_with_and_without_an_estimate(
    before: FormCosts, after: FormCosts, slow: bool
) -> None:
    assert figures.too_slow(before, after, 2.0) == slow


def test_what_is_worse_is_in_the_title_beside_what_is_better() -> None:
    before, after = on_a_cpu("gathered"), on_a_cpu("row_by_row")
    assert before.compiled is not None
    stored = replace(before.compiled, memory=Memory(4096, 0, 0, 0, 0, 0))
    words = list(figures.words(replace(before, compiled=stored), after, timed=False))
    names = [each.partition(" ")[0] for each in words]
    assert figures.worse(before, after) == {"launched", "moved"}
    assert names == ["kernels", "launches", "temp", "memory"]
