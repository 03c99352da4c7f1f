"""JX413: what a version of jaxlib is known to compile wrongly is reported there, and nowhere
else.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import jaxlib
import pytest
import pytest_asyncio

from jaxsight import rules
from jaxsight.session import Session
from tests.miscompiled.__main__ import end
from tests.miscompiled.patterns import BROKEN, PATTERNS, Pattern, findings
from tests.quiet import QUIET
from tests.sessions import session_without_spare

KNOWN = [pattern for pattern in PATTERNS if pattern.issue]
NEIGHBOURS = [pattern for pattern in PATTERNS if not pattern.issue]
ISSUES = {pattern.issue: pattern for pattern in KNOWN}
PAGE = rules.file_of(rules.RULES["JX413"])
IS_WRONG = (
    jaxlib.__version__ == "0.10.2" and sys.platform == "linux" and BROKEN.machine.endswith("x86_64")
)


def name(pattern: Pattern) -> str:
    return pattern.name


@pytest.mark.parametrize("pattern", KNOWN, ids=name)
def test_a_known_pattern_is_reported_with_its_issue(pattern: Pattern) -> None:
    (message,) = findings(pattern, BROKEN)
    assert f"jax#{pattern.issue}" in message


@pytest.mark.parametrize("pattern", NEIGHBOURS, ids=name)
def test_a_neighbour_is_not_reported(pattern: Pattern) -> None:
    assert findings(pattern, BROKEN) == []


def test_the_message_says_which_version_and_what_avoids_it() -> None:
    (message,) = findings(PATTERNS[0], BROKEN)
    assert message == (
        "jaxlib 0.10.2 computes this reduced matrix product wrongly on CPUs (jax#39103)"
    )


@pytest.mark.parametrize("version", ["0.8.0", "0.10.1", "0.11.1", "0.12.0", "0.12.0.1"])
@pytest.mark.parametrize("issue", ISSUES)
def test_versions_that_are_right_are_silent(issue: int, version: str) -> None:
    assert findings(ISSUES[issue], replace(BROKEN, jaxlib=version)) == []


def test_a_version_has_only_its_own_faults() -> None:
    runtime = replace(BROKEN, jaxlib="0.11.0")
    assert [issue for issue in ISSUES if findings(ISSUES[issue], runtime)] == [39257]


@pytest.mark.parametrize(
    "other",
    [
        {"backend": ""},
        {"machine": "darwin arm64"},
        {"flags": "--xla_cpu_experimental_ynn_fusion_type="},
        {"flags": "--xla_a=1 --xla_disable_hlo_passes=fusion,dot-library-rewriter"},
    ],
)
def test_where_the_fusions_are_not_made_nothing_is_reported(other: dict[str, str]) -> None:
    assert findings(PATTERNS[0], replace(BROKEN, **other)) == []


def test_flags_that_leave_the_fusions_on_silence_nothing() -> None:
    flags = "--xla_cpu_experimental_ynn_fusion_type=LIBRARY_FUSION_TYPE_REDUCE"
    assert findings(PATTERNS[0], replace(BROKEN, flags=flags))


@pytest.mark.skipif(not IS_WRONG, reason="this jaxlib compiles them rightly")
@pytest.mark.parametrize("issue", ISSUES)
def test_what_is_reported_fails(issue: int) -> None:
    assert end(ISSUES[issue]) == ("wrong" if issue == 39103 else "crash")


SEEN = '''\
import jax.numpy as jnp


def moved(rotation, points):
    """
    Example inputs:
        rotation: f32[3, 3]
        points: f32[40000, 3]
    """
    unused = jnp.cos(points)
    return jnp.sum(rotation @ points.T + points.T, axis=0)
'''
"""Computed wrongly by jaxlib 0.10.2, and in no list."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = session_without_spare()
    folder = tmp_path_factory.mktemp("miscompiled")
    settings = {**QUIET, "python": sys.executable, "target": "cpu", "select": ["JX412", "JX413"]}
    session.configure([str(folder)], settings)
    yield session
    await session.aclose()


@pytest.mark.asyncio(loop_scope="module")
async def test_what_running_shows_to_be_wrong_is_reported_and_proves_nothing(
    session: Session, tmp_path: Path
) -> None:
    path = str(tmp_path / "moved.py")
    session.open(path, SEEN)
    assert [each.code for each in await session.findings(path, kernels=False)] == ["JX412"]
    fixes = await session.fixes(path)
    wrong = [each for each in await session.findings(path, kernels=False) if each.code == "JX413"]
    session.close(path)
    if not IS_WRONG:
        assert (len(fixes), wrong) == (1, [])
        return
    assert fixes == []
    (finding,) = wrong
    assert finding.range.start.line == 3
    assert finding.message == "jaxlib 0.10.2 computes result 0 wrongly on this CPU"
    numbers = r"-?[\d.e+-]+ instead of -?[\d.e+-]+ at \[\d+\]"
    assert re.fullmatch(rf"for random inputs it is {numbers}", finding.notes[0])


@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_s_example_is_reported_where_it_is_wrong_and_its_fix_nowhere(
    session: Session, tmp_path: Path
) -> None:
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    bad, good = blocks
    for text, expected in ((bad, ["JX413"] if IS_WRONG else []), (good, [])):
        path = str(tmp_path / "page.py")
        session.open(path, text)
        assert [each.code for each in await session.findings(path, kernels=False)] == expected
        session.close(path)
