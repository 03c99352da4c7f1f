"""A function is run when the user asks, and only then; its times are beside its kernels."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from jaxsight.features.measuring import timing
from jaxsight.features.measuring.actions import measured_function
from jaxsight.features.measuring.timing import record
from jaxsight.features.named_function import compiled_function, view_of
from jaxsight.queries.measurements import MeasuringCancelled, NotMeasured
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust
from jaxsight.wire.messages.measuring import MeasuringLimits
from jaxsight.wire.messages.replies import Stage
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

MODEL = '''\
import jax
import jax.numpy as jnp

RAN = {ran!r}


def note(x):
    with open(RAN, "a") as file:
        file.write("run\\n")
    return x


def block(x, w):
    """
    Example inputs:
        x: f32[128, 64]
        w: f32[64, 64]
    """
    h = jnp.tanh(x @ w)
    return jnp.sort(h, axis=-1)


def noted(x):
    """
    Example inputs:
        x: f32[4]
    """
    return jax.pure_callback(note, x, x)


def forever(x):
    """
    Example inputs:
        x: f32[8]
    """
    return jax.lax.while_loop(lambda c: jnp.all(jnp.abs(c) < 10), jnp.sin, x)
'''

FEW = MeasuringLimits(runs=10)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text("", "utf-8")
    (folder / "model.py").write_text(MODEL.format(ran=str(folder / "ran")), "utf-8")
    return folder / "model.py"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(model: Path) -> AsyncIterator[Session]:
    session = session_without_spare()
    settings = {**QUIET, "python": sys.executable, "target": "cpu"}
    session.configure([str(model.parent)], {**settings, "timeouts": {"measure": 3}})
    session.open(str(model), text_of(model))
    yield session
    await session.aclose()


def text_of(model: Path) -> str:
    return model.read_text("utf-8")


def processes() -> set[int]:
    return {child.pid for child in psutil.Process(os.getpid()).children(recursive=True)}


async def test_kernels_have_their_times_and_lines(session: Session, model: Path) -> None:
    stages: list[Stage] = []
    found = await measured_function(
        session.engine, str(model), "block", limits=FEW, on_stage=stages.append
    )
    assert found.unmatched_seconds == 0
    graph = found.kernels.graph
    assert {row.index for row in found.rows} <= set(range(graph.kernel_count))
    assert sum(row.share for row in found.rows) == pytest.approx(1)
    sort = next(row for row in found.rows if graph.kernels[row.index or 0].kind == "sort")
    assert sort.lines == (20,)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert [
        stage.stage for stage in stages if stage.stage in ("compile", "measure", "profile")
    ] == [
        "compile",
        "measure",
        "profile",
    ]
    written = record(found, "block")
    assert written["wall_seconds"] == found.measurement.times.wall.median
    assert written["random_arguments"] == ["x", "w"]
    assert timing.wall(found.measurement).endswith("s")
    assert timing.facts(found.measurement)


async def test_the_process_ends_with_the_measurement(session: Session, model: Path) -> None:
    await view_of(session.engine, str(model), "block")
    await compiled_function(session.engine, str(model), "block", complete=True)
    before = processes()
    await measured_function(session.engine, str(model), "block", limits=FEW)
    assert processes() <= before


async def test_a_changed_function_makes_its_times_stale(session: Session, model: Path) -> None:
    path, text = str(model), text_of(model)

    async def shown() -> bool:
        _, kernels = await compiled_function(session.engine, path, "block", complete=True)
        assert isinstance(kernels, LocatedFigures)
        found = session.engine.measurements.last(kernels.view, kernels.target)
        assert found is not None
        return found[1]

    await measured_function(session.engine, path, "block", limits=FEW)
    assert not await shown()
    session.change(path, text.replace("jnp.tanh", "jnp.sin"))
    assert await shown()
    session.change(path, "# a comment\n" + text)
    assert not await shown()
    session.change(path, text)


async def test_nothing_runs_before_the_user_asks(session: Session, model: Path) -> None:
    path = str(model)
    await view_of(session.engine, path, "noted")
    await compiled_function(session.engine, path, "noted", complete=True)
    ran = model.parent / "ran"
    assert not ran.exists()
    await measured_function(session.engine, path, "noted", limits=FEW)
    assert ran.read_text("utf-8").count("run") >= 10


async def test_a_function_that_never_ends_says_so(session: Session, model: Path) -> None:
    with pytest.raises(NotMeasured, match="running the function took longer than 3 s") as raised:
        await measured_function(session.engine, str(model), "forever")
    assert raised.value.help == "increase the setting `timeouts.measure`"


async def test_cancelling_ends_the_process_within_a_second(session: Session, model: Path) -> None:
    path = str(model)
    await view_of(session.engine, path, "forever")
    await compiled_function(session.engine, path, "forever", complete=True)
    before, running = processes(), asyncio.Event()

    def reach(stage: Stage) -> None:
        if stage.stage == "measure":
            running.set()

    task = asyncio.create_task(measured_function(session.engine, path, "forever", on_stage=reach))
    await asyncio.wait_for(running.wait(), 60)
    assert session.engine.measurements.is_running(path, "forever")
    begin = time.monotonic()
    assert session.engine.measurements.cancel(path, "forever")
    with pytest.raises(MeasuringCancelled):
        await task
    assert time.monotonic() - begin < 1
    assert processes() <= before
    assert not session.engine.measurements.is_running(path, "forever")


async def test_two_functions_are_compared(session: Session, model: Path) -> None:
    path = str(model)
    other = await view_of(session.engine, path, "block")
    found = await measured_function(
        session.engine, path, "block", against=other, limits=MeasuringLimits(runs=30)
    )
    ratio = found.measurement.measured.ratio
    assert ratio is not None
    assert ratio.low <= ratio.ratio <= ratio.high
    assert "block" in timing.compared(ratio, "block", "block of HEAD")


async def test_absent_devices_are_not_measured(session: Session, model: Path) -> None:
    with pytest.raises(NotMeasured, match="no device of this machine"):
        await measured_function(session.engine, str(model), "block", "cuda:h100")
    with pytest.raises(NotMeasured, match="no device of cluster"):
        await measured_function(session.engine, str(model), "block", "ssh://cluster/cuda:h100")


async def test_another_machine_runs_the_program_alone(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"  # a machine that is this one, with its Python
    python = f"PATH={Path(sys.executable).parent}:$PATH"
    text = f'#!/bin/sh\nfor last; do :; done\ncd /\n{python} exec sh -c "$last"\n'
    await asyncio.to_thread(ssh.write_text, text)
    await asyncio.to_thread(ssh.chmod, 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    session = session_without_spare(Trust(Policy.ALWAYS, allowed=["ssh://far.example"]))
    session.configure([str(model.parent)], {**QUIET, "python": sys.executable})
    try:
        session.open(str(model), text_of(model))
        found = await measured_function(
            session.engine, str(model), "block", "ssh://far.example/cpu", limits=FEW
        )
        assert found.measurement.times.wall.runs == 10
        assert found.measurement.times.drawn == ("x", "w")
        assert found.unmatched_seconds == 0
        assert {row.lines for row in found.rows} >= {(20,)}
        with pytest.raises(NotMeasured, match="on this machine only"):
            await measured_function(
                session.engine,
                str(model),
                "block",
                "ssh://far.example/cpu",
                against=found.kernels.view,
            )
    finally:
        await session.aclose()


async def test_a_host_that_is_not_allowed_gets_nothing(
    session: Session, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    await asyncio.to_thread(ssh.write_text, f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    await asyncio.to_thread(ssh.chmod, 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(NotMeasured, match="waits for your approval"):
        await measured_function(session.engine, str(model), "block", "ssh://far.example/cpu")
    assert not (tmp_path / "asked").exists()


async def test_code_that_may_not_run_is_not_measured(model: Path) -> None:
    session = session_without_spare()
    session.configure([str(model.parent)], {**QUIET, "python": sys.executable}, trusted=False)
    try:
        session.open(str(model), text_of(model))
        with pytest.raises(NotMeasured, match="not trusted"):
            await measured_function(session.engine, str(model), "noted", "cpu")
    finally:
        await session.aclose()
