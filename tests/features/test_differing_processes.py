"""A function for several devices is traced as other processes where its code may differ there, in
processes that are shared by functions and end with the session.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from jaxsight.projects import project
from jaxsight.session import Session
from jaxsight.workers.supervisor import Tracers
from tests.quiet import QUIET

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

PROGRAM = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P

MESH = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))


def local(x):
    return jax.lax.pmean(jnp.mean(x), "data")


def mean(x):
    return jax.shard_map(local, mesh=MESH, in_specs=P("data"), out_specs=P())(x)


def first(x):
    \"\"\"
    Example inputs:
        x: f32[64]
    \"\"\"
    return mean(x) if jax.process_index() == 0 else mean(-x)


def second(x):
    \"\"\"
    Example inputs:
        x: f32[64]
    \"\"\"
    return mean(x / jax.process_count())
"""


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> list[Tracers]:
    """The tracers that are started with a hash seed."""
    started: list[Tracers] = []

    class Noted(Tracers):
        def __init__(self, *where: str, variables: Mapping[str, str], **how: Any) -> None:
            super().__init__(*where, variables=variables, **how)
            if "PYTHONHASHSEED" in variables:
                started.append(self)

    monkeypatch.setattr(project, "Tracers", Noted)
    return started


@pytest_asyncio.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    session = Session()
    session.configure([str(tmp_path)], {"python": sys.executable, "target": "cpu", **QUIET})
    yield session
    await session.aclose()


async def found(session: Session, path: str, text: str) -> list[tuple[str, int]]:
    session.open(path, text)
    findings = (await session.report(path, kernels=False)).reported
    return [(each.code, each.range.start.line) for each in findings]


async def test_functions_share_the_processes_and_a_second_look_starts_none(
    session: Session, tmp_path: Path, peers: list[Tracers]
) -> None:
    path, line = (
        str(tmp_path / "job.py"),
        PROGRAM.splitlines().index("    return mean(x) if jax.process_index() == 0 else mean(-x)"),
    )
    assert await found(session, path, PROGRAM) == [("JX460", line)]
    processes, with_another_seed = 4, 1
    assert len(peers) == processes + with_another_seed
    moved = f"# A comment.\n{PROGRAM}"
    session.change(path, moved)
    findings = (await session.report(path, kernels=False)).reported
    assert [(each.code, each.range.start.line) for each in findings] == [("JX460", line + 1)]
    assert len(peers) == processes + with_another_seed
    await session.aclose()
    assert not any(tracers.pids for tracers in peers)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("jax.process_index() == 0", "jnp.ndim(x) == 1"),
        (
            '    return jax.shard_map(local, mesh=MESH, in_specs=P("data"), out_specs=P())(x)',
            "    return x",
        ),
    ],
)
async def test_code_that_cannot_differ_and_programs_for_one_device_are_not_reported(
    session: Session, tmp_path: Path, old: str, new: str
) -> None:
    assert old in PROGRAM
    assert await found(session, str(tmp_path / "job.py"), PROGRAM.replace(old, new)) == []


async def test_code_that_mentions_nothing_that_may_differ_starts_no_process(
    session: Session, tmp_path: Path, peers: list[Tracers]
) -> None:
    text = PROGRAM.replace("jax.process_index() == 0", "jnp.ndim(x) == 1").replace(
        "jax.process_count()", "4"
    )
    assert await found(session, str(tmp_path / "job.py"), text) == []
    assert not peers


async def test_an_editor_compares_processes_when_the_file_is_saved(
    session: Session, tmp_path: Path, peers: list[Tracers]
) -> None:
    path, same = str(tmp_path / "job.py"), PROGRAM.replace("jax.process_count()", "4")
    same = same.replace("jax.process_index() == 0", "jnp.ndim(x) == 1")
    differing = PROGRAM.replace("jax.process_count()", "4")

    async def shown(*, until: list[str]) -> None:
        while [each.code for each in (await session.report(path)).reported] != until:
            await session.events.get()  # a refresh follows

    session.open(path, same)
    await shown(until=[])
    session.change(path, differing)
    await shown(until=[])
    assert not peers
    session.saved(path)
    await shown(until=["JX460"])
    session.change(path, differing.replace("mean(-x)", "mean(2 * x)"))  # it differed before
    await shown(until=["JX460"])
    started = len(peers)
    session.change(path, same)
    await shown(until=[])
    session.change(path, differing.replace("mean(-x)", "-mean(x)"))
    await shown(until=[])
    assert len(peers) == started
