"""Rules find the faults that were planted in programs, and nothing in programs that are right.

Whoever wrote `tests/fixtures/planted.py` and `planted_near_misses.py` did not see the rules. A
line with a fault ends with `# ` and the rule's code.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.rules.finding import Finding
from jaxsight.session import Session
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECALL = 0.92
"""How many of the planted faults are found, at least."""
_PLANTED = re.compile(r"# (JX\d+)$")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[Session]:
    session = session_without_spare()
    session.configure([str(FIXTURES)], {"python": sys.executable, "target": "cpu", **QUIET})
    yield session
    await session.aclose()


async def findings_of(session: Session, file: Path, functions: int) -> list[Finding]:
    """Return the findings of a file that has so many functions with example inputs at least."""
    path, text = str(file), await asyncio.to_thread(file.read_text, encoding="utf-8")
    session.open(path, text)
    findings = (await session.report(path, kernels=False)).reported
    assert len(session.engine.documents.functions(path)) >= functions
    session.close(path)
    return findings


async def test_planted_faults_are_found(session: Session) -> None:
    file = FIXTURES / "planted.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    planted = {
        (number, match[1])
        for number, line in enumerate(lines)
        if (match := _PLANTED.search(line)) is not None
    }
    findings = await findings_of(session, file, 100)
    covered = {
        (line, finding.code)
        for finding in findings
        for line in range(finding.range.start.line, finding.range.end.line + 1)
    }
    missed = sorted(planted - covered)
    elsewhere = [
        (finding.range.start.line + 1, finding.code, finding.message)
        for finding in findings
        if not any(
            finding.range.start.line <= line <= finding.range.end.line for line, _ in planted
        )
    ]
    assert len(planted) >= 100
    assert len(missed) <= (1 - RECALL) * len(planted), [
        (line + 1, code, lines[line].strip()) for line, code in missed
    ]
    assert not elsewhere


async def test_programs_that_resemble_faults_are_not_reported(session: Session) -> None:
    file = FIXTURES / "planted_near_misses.py"
    findings = await findings_of(session, file, 60)
    assert [
        (finding.range.start.line + 1, finding.code, finding.message) for finding in findings
    ] == []
