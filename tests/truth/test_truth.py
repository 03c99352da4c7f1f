"""An answer about a module is that of the imported module, or it names what was left out."""

from __future__ import annotations

import sys

import pytest

from tests.searches import part
from tests.truth import cases, check, edits, long_session, pairs, projects
from tests.truth.__main__ import described, table
from tests.truth.measure import Judged, Verdict, measured

pytestmark = [pytest.mark.search, pytest.mark.slow]

HELD = part(cases.cases())
FAMILIES = [*dict.fromkeys(case.family for case in HELD)]

RIGHT = 0.9
"""The share of answers that need no caveat."""

_known: dict[str, list[Judged]] = {}


async def judged(family: str) -> list[Judged]:
    """The answers about a family's cases, measured once."""
    if family not in _known:
        _known[family] = await measured(
            [case for case in HELD if case.family == family], sys.executable, 2
        )
    return _known[family]


@pytest.mark.parametrize("family", FAMILIES)
async def test_no_answer_is_silently_wrong(family: str) -> None:
    answers = await judged(family)
    assert answers
    assert [described(each) for each in answers if each.verdict is Verdict.WRONG] == []
    assert [described(each) for each in answers if each.untrue] == []


async def test_what_a_file_did_does_not_show_in_the_answers_about_the_next_one() -> None:
    answers = await pairs.measured(part(pairs.drawn(20, seed=1)), sys.executable, 2)
    assert [described(each) for each in answers if each.verdict is Verdict.WRONG] == []
    assert [described(each) for each in answers if each.untrue] == []


async def test_answers_after_edits_are_those_about_the_text_as_it_stands() -> None:
    answers = await edits.measured(part(edits.drawn(60, seed=1)), sys.executable, 2)
    assert [described(each) for each in answers if each.verdict is Verdict.WRONG] == []
    assert [described(each) for each in answers if each.untrue] == []


async def test_answers_in_a_project_are_those_about_all_of_its_texts() -> None:
    # Of four steps, one asks.
    answers = await projects.measured(4 * len(part(range(40))), 1, sys.executable, 2)
    assert answers
    assert [described(each) for each in answers if each.verdict is Verdict.WRONG] == []


async def test_a_long_session_shows_what_a_fresh_one_shows() -> None:
    found = await long_session.measured(4 * len(part(range(100))), 1, sys.executable)
    assert found.compared
    assert found.wrong == []


async def test_after_each_edit_a_session_shows_what_a_fresh_one_shows() -> None:
    found = await long_session.measured(len(part(range(40))) // 2, 2, sys.executable, 1)
    assert found.compared
    assert found.wrong == []


async def test_sessions_are_compared_when_all_programs_have_run() -> None:
    # A function of a file is shown as in the run of another, which is the last one to run.
    found = await long_session.measured(3, 103, sys.executable, 3)
    assert found.compared
    assert found.wrong == []


async def test_most_answers_are_right_without_a_caveat() -> None:
    answers = [each for family in FAMILIES for each in await judged(family)]
    right = sum(each.verdict is Verdict.RIGHT for each in answers)
    assert right >= RIGHT * len(answers), table(answers)


def test_some_cases_depend_on_the_effects_that_they_mark() -> None:
    assert check.wrong(part(cases.cases()[::8]), sys.executable, 2) == []  # all: `--check`
