"""Errors from public threads are explained, and programs that resemble them are not reported."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.rules.errors.threads import Checked, check, programs

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

EXPLAINED = 69
"""How many of the errors are explained, at least: all but a handler of errors that JAX never raises."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def checked() -> list[Checked]:
    return await check(list(programs()))


async def test_the_corpus_is_complete() -> None:
    errors = [each for each in programs() if each.words]
    near = [each for each in programs() if not each.words]
    further = [each for each in programs(["further"]) if each.words]
    assert (len(errors), len(near), len(further)) == (70, 88, 10)
    assert all(each.thread and each.lines for each in errors)
    assert not any(each.thread or each.lines for each in near)


async def test_errors_are_explained(checked: list[Checked]) -> None:
    errors = [each for each in checked if each.program.words]
    explained = [each.program.title for each in errors if each.right]
    assert len(explained) >= EXPLAINED, explained


async def test_errors_that_jax_raises_are_explained(checked: list[Checked]) -> None:
    files = ("raises", "further")
    raised = [each for each in checked if each.program.file in files and each.program.words]
    assert [each.program.title for each in raised if not each.right] == []


async def test_near_misses_are_silent(checked: list[Checked]) -> None:
    near = [each for each in checked if not each.program.words]
    reported = {each.program.title: each.findings for each in near if not each.right}
    assert not reported
