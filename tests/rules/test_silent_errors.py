"""Rules find errors that JAX passes in silence, and nothing in what only looks like them.

`silent` of `tests/corpora/rules/errors` was written before the rules, each file from the thread
that it names: the line of the error ends with `# ` and the rule's code. `silent_near` has what must
stay silent.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import jax
import pytest
import pytest_asyncio

from jaxsight.rules.finding import Finding
from jaxsight.session import Session
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

ERRORS = Path(__file__).parents[1] / "corpora" / "rules" / "errors"
_CODE = re.compile(r"# (JX\d+)$", re.MULTILINE)
_UNINITIALIZED = (0, 11)
"""The JAX since which `jnp.empty` is not zero."""


def _files(folder: str) -> list[Path]:
    return sorted((ERRORS / folder).glob("*.py"))


CODES = {code for file in _files("silent") for code in _CODE.findall(file.read_text("utf-8"))}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[Session]:
    session = session_without_spare()
    session.configure([str(ERRORS)], {"python": sys.executable, "target": "cpu", **QUIET})
    yield session
    await session.aclose()


async def findings_of(session: Session, file: Path) -> list[Finding]:
    path, text = str(file), await asyncio.to_thread(file.read_text, encoding="utf-8")
    session.open(path, text)
    findings = (await session.report(path, kernels=False)).reported
    session.close(path)
    return findings


@pytest.mark.parametrize("file", _files("silent"), ids=lambda file: file.stem)
async def test_an_error_is_found_at_its_line(session: Session, file: Path) -> None:
    if "empty" in file.stem and jax.__version_info__ < _UNINITIALIZED:
        pytest.skip("`jnp.empty` returns zeros")
    lines = (await asyncio.to_thread(file.read_text, encoding="utf-8")).splitlines()
    expected = {(n, m[1]) for n, line in enumerate(lines) if (m := _CODE.search(line))}
    findings = await findings_of(session, file)
    found = {(finding.range.start.line, finding.code): finding for finding in findings}
    assert expected <= found.keys()
    assert all(found[place].help for place in expected)


@pytest.mark.parametrize("file", _files("silent_near"), ids=lambda file: file.stem)
async def test_a_near_miss_is_silent(session: Session, file: Path) -> None:
    findings = await findings_of(session, file)
    assert [(f.code, f.range.start.line + 1) for f in findings if f.code in CODES] == []
