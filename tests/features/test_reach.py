"""What an editor and a terminal show of callbacks, donated buffers and constants, and of what is
not compiled.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.kernels.table import record as figures
from jaxsight.features.kernels.table import table as rows
from jaxsight.features.kernels.table import uncompiled
from jaxsight.features.named_function import compiled_function
from jaxsight.figures.program_notes import memory_lines, notes
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.rules.finding import Severity
from jaxsight.session import Session
from tests.sessions import session_without_spare

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

MODEL = '''\
import functools

import jax
import jax.numpy as jnp
import numpy as np

TABLE = np.arange(1024, dtype="float32") % 7


def noisy(x):
    """
    Example inputs:
        x: f32[64]
    """
    jax.debug.print("{}", x.sum())
    return jnp.sin(x)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(state, old, x):
    """
    Example inputs:
        state: f32[1024]
        old: f32[3]
        x: f32[1024]
    """
    return x.sum(), state + x * TABLE


def spans(x):
    """
    Example inputs:
        x: f32[64]
    """
    mesh = jax.sharding.AbstractMesh((8,), ("i",), (jax.sharding.AxisType.Auto,))
    part = jax.sharding.PartitionSpec("i")
    return jax.shard_map(jnp.sin, mesh=mesh, in_specs=part, out_specs=part)(x)


def branches(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x if x.sum() > 0 else -x


def attends(q):
    """
    Example inputs:
        q: bf16[2,128,4,64]
    """
    return jax.nn.dot_product_attention(q, q, q, implementation="cudnn")
'''


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("project") / "model.py")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(path: str) -> AsyncIterator[Session]:
    session = session_without_spare()
    session.configure([str(Path(path).parent)], {"python": sys.executable, "target": "cpu"})
    session.open(path, MODEL)
    yield session
    await session.aclose()


async def kernels(session: Session, path: str, function: str) -> LocatedFigures:
    found = (await compiled_function(session.engine, path, function, complete=True))[1]
    assert isinstance(found, LocatedFigures)
    return found


async def test_the_headline_and_the_list_name_a_callback(session: Session, path: str) -> None:
    noisy = await kernels(session, path, "noisy")
    assert " · 1 host callback · temp " in noisy.headline
    assert "| host callback |" in rows(noisy)
    record = figures(noisy, "noisy")
    assert record["callback_count"] == 1


async def test_donated_buffers_and_constants_are_shown(session: Session, path: str) -> None:
    step = await kernels(session, path, "step")
    lines = memory_lines(step)
    assert lines == [
        "constants: 4 KiB embedded in the executable",
        "donated: state → result 1",
        "donated but unused: old",
    ]
    table = rows(step)
    assert all(line in table for line in lines)
    record = figures(step, "step")
    assert record["donations"] == [
        {"input": "state", "result": "result 1"},
        {"input": "old", "result": None},
    ]
    assert (record["constant_bytes"], record["aliased_bytes"]) == (4096, 4096)
    panel = await session.panel(path, "step")
    assert panel is not None
    assert panel.figures is not None
    assert notes(panel.figures) == lines


async def test_each_function_that_is_not_compiled_is_named_once(
    session: Session, path: str
) -> None:
    await session.report(path, kernels=True)
    reasons = {each.function: each.reason for each in await uncompiled(session.engine, path)}
    assert reasons == {
        "branches": "tracing fails (JX401, line 45)",
        "attends": "tracing fails (JX400, line 53)",
    }


async def test_cudnn_that_is_not_here_is_no_error_of_the_user(session: Session, path: str) -> None:
    (found,) = [each for each in (await session.report(path)).reported if each.code == "JX400"]
    assert found.severity is Severity.INFORMATION
    assert list(found.lines) == [
        "cuDNN attention can be traced only on a machine with the GPU and cuDNN",
        'help: use `implementation="xla"` to trace it on this machine',
    ]
