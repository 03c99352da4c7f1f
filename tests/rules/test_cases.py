"""Rules find what the cases in their folders say, with these words, and nothing in near misses."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import jax
import pytest
import pytest_asyncio

from jaxsight.rules import RULES
from jaxsight.rules.fixing.context import applied
from jaxsight.rules.rule import Rule
from jaxsight.session import Session
from tests.features.fixes.test_fixes import without_seconds
from tests.features.rendering import with_marks, without_marks
from tests.quiet import QUIET
from tests.rules.cases import (
    FIXED,
    FOUND,
    NOT_FOUND,
    Block,
    Cases,
    cases_of,
    difference,
    file_of,
    replaced,
)
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEWEST = (0, 12)
"""The JAX that rules of kernels and fixes are tested on: what XLA fuses depends on its version."""
_SECONDS = re.compile(r"\b\d+\.\d s\b|(?<=took )[\d.]+ m?s\b")
"""Times that this machine took."""
WHY_NOT = (
    "JX33", "JX400", "JX401", "JX402", "JX440", "JX441", "JX442", "JX443", "JX446", "JX447", "JX9",
)  # fmt: skip
"""Rules that report why a function is not analyzed: a near miss must not be silent for that."""

WITH_CASES = [rule for rule in RULES.values() if file_of(rule).is_file()]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[Session]:
    session = session_without_spare()
    yield session
    await session.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("rule", WITH_CASES, ids=lambda rule: rule.code)
async def test_cases(rule: Rule, session: Session, tmp_path: Path, update_fixtures: bool) -> None:
    cases = cases_of(rule)
    release = NEWEST if rule.in_kernels else cases.release
    if release is not None and jax.__version_info__[:2] != release:
        pytest.skip(f"the findings are those of JAX {release[0]}.{release[1]}")
    if rule.in_kernels and sys.platform != "linux":
        pytest.skip("the compilers are for Linux alone")
    settings = {"python": sys.executable, "target": cases.target, "select": [rule.code, *WHY_NOT]}
    session.configure([str(tmp_path)], {**QUIET, **settings})
    actual = [
        *[(block, await marked(rule, block, session, tmp_path)) for block in cases.blocks(FOUND)],
        *[
            (block, await marked(rule, block, session, tmp_path))
            for block in cases.blocks(NOT_FOUND)
        ],
    ]
    if jax.__version_info__[:2] == NEWEST:  # proving fixes takes most of the time
        actual += await fixed(cases, session, tmp_path)
    text = replaced(cases.text, actual)
    if update_fixtures:
        cases.file.write_text(text, encoding="utf-8")
    assert text == cases.text


async def marked(rule: Rule, block: Block, session: Session, folder: Path) -> str:
    """Return the program of a block with its findings under their lines."""
    source = without_marks(block.text)
    path = str(folder / "case.py")
    session.open(path, source)
    program = rule.in_module or rule.in_program or rule.explain
    compiled = rule.in_kernels is not None or program is None
    findings = (await session.report(path, kernels=compiled)).reported
    session.close(path)
    return _SECONDS.sub("… s", with_marks(source, findings))


async def fixed(cases: Cases, session: Session, folder: Path) -> list[tuple[Block, str]]:
    """Return each difference with what the first fix of the program before it makes of it."""
    made = []
    blocks = cases.blocks(FIXED)
    for program, change in zip(blocks[::2], blocks[1::2], strict=True):
        assert (program.language, change.language) == ("python", "diff")
        path = str(folder / "case.py")
        session.open(path, program.text)
        await session.report(path, kernels=True)
        fixes = await session.fixes(path)
        session.close(path)
        title = without_seconds(fixes[0].title) if fixes else "nothing is offered"
        after = applied(program.text, fixes[0].edits) if fixes else program.text
        made.append((change, difference(title, program.text, after)))
    return made
