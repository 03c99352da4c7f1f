"""Findings of programs and of kernels, as `tests/fixtures/noticed` has them written under the lines
that they speak of.
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

from jaxsight.features.kernels.table import uncompiled
from jaxsight.features.named_function import compiled_function
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.session import Session
from tests.features.rendering import with_marks, without_marks
from tests.features.test_fixtures import FIXTURES, check
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

TARGETS = {"h100": "cuda:h100", "cpu": "cpu"}
RELEASE = (0, 12)
"""What XLA makes of a program depends on its version: the fixtures are of this one."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[Session]:
    session = session_without_spare()
    yield session
    await session.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.skipif(jax.__version_info__[:2] != RELEASE, reason="the figures are of JAX 0.12")
@pytest.mark.parametrize("name", sorted(file.stem for file in (FIXTURES / "noticed").glob("*.py")))
async def test_findings_of_programs_and_kernels(
    name: str, session: Session, update_fixtures: bool
) -> None:
    file = FIXTURES / "noticed" / f"{name}.py"
    target = TARGETS[name.rpartition("_")[2]]
    session.configure([str(FIXTURES)], {"python": sys.executable, "target": target})
    source = without_marks(file.read_text(encoding="utf-8"))
    session.open(str(file), source)
    findings = (await session.report(str(file), kernels=True)).reported
    session.close(str(file))
    check(file, with_marks(source, findings), update_fixtures)


CAPTURED = '''\
import jax.numpy as jnp
import numpy as np

TABLE = np.random.default_rng(0).normal(size=1_000_000).astype("float32")


def ranked(x):
    """
    Example inputs:
        x: f32[1000000]
    """
    return x + jnp.sort(TABLE)
'''


EXPECTING = CAPTURED.replace(
    "Example inputs:", "Expect:\n        kernels <= 9\n\n    Example inputs:"
)


async def test_a_fold_of_minutes_is_measured_until_it_is_too_long(
    tmp_path: Path, session: Session
) -> None:
    session.configure([str(tmp_path)], {"python": sys.executable, "target": "cpu"})
    path = str(tmp_path / "model.py")
    session.open(path, EXPECTING)
    assert "JX102" not in {
        each.code for each in (await session.report(path, kernels=False)).reported
    }
    found = {
        each.code: each.message for each in (await session.report(path, kernels=True)).reported
    }
    _, result = await compiled_function(session.engine, path, "ranked", complete=True)
    left = await uncompiled(session.engine, path)
    session.close(path)
    assert {"JX101", "JX102", "JX501"} == set(found)
    assert re.fullmatch(
        r"compiling for cpu takes more than 15 s with constant folding, (\d\.\d|< 0\.1) s without",
        found["JX102"],
    )
    assert "constant folding for cpu takes too long" in found["JX501"]
    assert not left
    assert isinstance(result, LocatedFigures)
    assert result.is_unfolded
    assert "sort" in result.compiled.hlo
    assert any("compiled without constant folding" in note for note in result.compiled.notes)


@pytest.mark.usefixtures("cold_cache")
async def test_a_measurement_ends_when_its_file_is_closed(tmp_path: Path) -> None:
    session = session_without_spare()
    session.configure([str(tmp_path)], {"python": sys.executable, "target": "cpu", **QUIET})
    path = str(tmp_path / "closed.py")
    session.open(path, CAPTURED.replace("default_rng(0)", "default_rng(7)"))
    asking = asyncio.ensure_future(session.report(path, kernels=True))
    while session.engine.programs.compiles < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    session.close(path)
    assert "JX102" not in {finding.code for finding in (await asking).reported}
    await session.aclose()


async def test_a_comment_leaves_a_finding_out_and_an_idle_one_is_told(
    tmp_path: Path, session: Session
) -> None:
    session.configure([str(tmp_path)], {"python": sys.executable, "target": "cpu"})
    path = str(tmp_path / "ignored.py")
    text = CAPTURED.replace("sort(TABLE)", "sort(TABLE)  # jaxsight: ignore[JX101, JX102, JX401]")
    session.open(path, text)
    found = (await session.report(path, kernels=True)).reported
    session.close(path)
    assert [finding.code for finding in found] == ["JX910"]
    assert "`JX401`" in found[0].message


async def test_what_only_kernels_tell_is_left_when_nothing_is_compiled(
    tmp_path: Path, session: Session
) -> None:
    session.configure([str(tmp_path)], {"python": sys.executable, "target": "cpu", **QUIET})
    path = str(tmp_path / "sums.py")
    text = CAPTURED.replace("x + jnp.sort(TABLE)", "x * TABLE")
    session.open(path, text)
    before = session.engine.programs.compiles
    codes = [finding.code for finding in (await session.report(path, kernels=False)).reported]
    session.close(path)
    assert codes == ["JX101"]
    assert session.engine.programs.compiles == before


FILLED = '''\
import jax.numpy as jnp
import numpy as np

TABLE = np.zeros((512, 512), "float32")
SMALL = np.zeros((32, 32), "float32")
TABLE[:] = np.load("table.npy")


def scaled(x):
    """
    Example inputs:
        x: f32[512, 512]
    """
    return x * TABLE + jnp.sum(SMALL)
'''


async def test_a_table_that_was_not_filled_is_not_said_to_be_zeros(
    tmp_path: Path, session: Session
) -> None:
    session.configure([str(tmp_path)], {"python": sys.executable, "target": "cpu", **QUIET})
    path = str(tmp_path / "filled.py")
    session.open(path, FILLED)
    found = (await session.report(path, kernels=False)).reported
    session.close(path)
    noticed = [finding for finding in found if finding.code.startswith("JX1")]
    assert [finding.code for finding in noticed] == ["JX101"]
    assert "jnp.zeros" not in noticed[0].help


SUMMED = '''\
import jax.numpy as jnp


def weighted(x):
    """
    Example inputs:
        x: f32[131072, 2]
    """
    index = jnp.arange(x.shape[0])
    weight = jnp.stack((index, index), axis=-1)
    return x * 2 + jnp.sum(weight * x, axis=1, keepdims=True)
'''


@pytest.mark.parametrize(
    ("ignored", "told"), [({}, True), ({"cpu": ["JX2"]}, False), ({"tpu:*": ["JX2"]}, True)]
)
async def test_codes_are_ignored_by_target(
    tmp_path: Path, session: Session, ignored: dict[str, list[str]], told: bool
) -> None:
    settings = {"python": sys.executable, "target": "cpu", "perTargetIgnores": ignored}
    session.configure([str(tmp_path)], settings)
    path = str(tmp_path / "target.py")
    session.open(path, SUMMED)
    codes = {finding.code for finding in (await session.report(path, kernels=True)).reported}
    session.close(path)
    assert ("JX201" in codes) == told


DEAD = '''\
import jax.numpy as jnp
from jax import nn


def normalized(x):
    """
    Example inputs:
        x: f32[8, 4]
    """
    total = nn.logsumexp(x, axis=-1, keepdims=True)
    return x - total


def forgets(x):
    """
    Example inputs:
        x: f32[8, 4]
    """
    total = nn.logsumexp(x, axis=-1)
    return x
'''


async def test_what_a_library_makes_for_nothing_is_its_own_business(
    tmp_path: Path, session: Session
) -> None:
    settings = {"python": sys.executable, "target": "cpu", "select": ["JX412"], **QUIET}
    session.configure([str(tmp_path)], settings)
    path = str(tmp_path / "dead.py")
    session.open(path, DEAD)
    found = (await session.report(path, kernels=False)).reported
    session.close(path)
    assert {finding.range.start.line + 1 for finding in found} == {19}


LOOKED_UP = """\
import jax


def embedded(tokens, table):
    \"\"\"
    Example inputs:
        tokens: i32[128]
        table: f32[1000, 64]
    \"\"\"
    return jax.nn.one_hot(tokens, 1000) @ table
"""


@pytest.mark.parametrize(("target", "found"), [("cuda:h100", ["JX216"]), ("tpu:v5e", [])])
async def test_what_may_be_fast_on_tpus_is_not_reported_for_them(
    target: str, found: list[str], tmp_path: Path, session: Session
) -> None:
    session.configure([str(tmp_path)], {"python": sys.executable, "target": target, **QUIET})
    path = str(tmp_path / "lookup.py")
    session.open(path, LOOKED_UP)
    findings = (await session.report(path, kernels=False)).reported
    session.close(path)
    assert [each.code for each in findings] == found


@pytest.mark.parametrize("name", ["near_misses.py", "more_near_misses.py"])
async def test_near_misses_are_silent(name: str, session: Session) -> None:
    session.configure([str(FIXTURES)], {"python": sys.executable, "select": ["ALL"], **QUIET})
    file = FIXTURES / name
    session.open(str(file), file.read_text(encoding="utf-8"))
    found = (await session.report(str(file), kernels=False)).reported
    functions = session.engine.documents.functions(str(file))
    session.close(str(file))
    assert len(functions) >= 60
    assert not [(each.range.start.line + 1, each.code, each.message) for each in found]


async def test_near_misses_of_kernels_are_silent(session: Session) -> None:
    settings = {"python": sys.executable, "target": "cpu", "ignore": ["JX1", "JX202", "JX4"]}
    session.configure([str(FIXTURES)], {**settings, **QUIET})
    file = FIXTURES / "near_misses_of_kernels.py"
    session.open(str(file), file.read_text(encoding="utf-8"))
    found = (await session.report(str(file), kernels=True)).reported
    left = await uncompiled(session.engine, str(file))
    session.close(str(file))
    assert not left
    assert not [(each.range.start.line + 1, each.code, each.message) for each in found]
