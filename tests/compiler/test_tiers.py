"""Kernels known before code generation are those of the complete compile; memory follows, and no
figure is shown before it is known.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
import pytest_asyncio

import jaxsight
from jaxsight.compiler.answer import answer
from jaxsight.events import Refresh
from jaxsight.features.named_function import compiled_function
from jaxsight.queries.programs.located_figures import Refused
from jaxsight.rules.finding import Finding
from jaxsight.session import Session
from jaxsight.wire.messages.compiling import Compile, Compiled, NotCompiled
from tests.compiler.programs import a_sum
from tests.compiler.tiers import differences
from tests.features.rendering import CURSOR, without_hints, without_marks
from tests.searches import part
from tests.sessions import session_without_spare

FIXTURES = Path(__file__).parents[1] / "fixtures"
SOURCES = {
    str(file.relative_to(FIXTURES)): without_marks(
        without_hints(file.read_text(encoding="utf-8").replace(CURSOR, ""))
    )
    for file in sorted(FIXTURES.rglob("*.py"))
}
HAS_HOOK = jax.__version_info__ >= (0, 10, 2)

FUNCTION = '''\
import jax.numpy as jnp


def normalized(x):
    """
    Example inputs:
        x: f32[64, 32]
{more}    """
    return x / jnp.sum(x, axis=1, keepdims=True)
'''


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[Session]:
    session = session_without_spare()
    yield session
    await session.aclose()


async def outcome(
    session: Session, path: str, function: str, *, complete: bool = True
) -> Compiled | str:
    try:
        _, result = await compiled_function(
            session.engine, path, function, "cpu", complete=complete
        )
    except LookupError as error:
        return str(error)
    return result.trouble.message if isinstance(result, Refused) else result.compiled


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", part([*SOURCES]))
async def test_both_tiers_have_the_same_kernels(name: str, session: Session) -> None:
    path = str(FIXTURES / name)
    source = SOURCES[name]
    settings = {
        "python": sys.executable,
        "target": "cpu",
        "inlayHints": {"kernels": False, "barriers": False, "collectives": False},
    }
    session.configure([str(FIXTURES)], settings)
    session.open(path, source)
    different = {}
    for function in session.engine.documents.functions(path):
        early = await outcome(session, path, function, complete=False)
        complete = await outcome(session, path, function)
        if isinstance(early, Compiled) and isinstance(complete, Compiled):
            if words := differences(early, complete):
                different[function] = words
        else:
            assert early == complete
    session.close(path)
    assert different == {}


async def headline(session: Session, path: str) -> str:
    """Return the hint with a function's totals, once there is one."""
    labels = [hint.label for hint in await session.hints(path)]
    return next((label for label in labels if label.startswith("▣") and "kernel" in label), "")


def opened(session: Session, folder: Path, more: str = "", *, hints: bool = False) -> str:
    path = str(folder / "model.py")
    settings = {
        "python": sys.executable,
        "target": "cpu",
        "inlayHints": {"kernels": hints, "barriers": hints, "collectives": hints},
    }
    session.configure([str(folder)], settings)
    session.open(path, FUNCTION.format(more=more))
    return path


@pytest.mark.usefixtures("cold_cache")
@pytest.mark.skipif(not HAS_HOOK, reason="JAX has no hook: compiles are complete")
async def test_hint_says_that_memory_is_not_known_yet(tmp_path: Path) -> None:
    session = session_without_spare()
    path = opened(session, tmp_path, hints=True)
    labels: list[str] = []
    async with asyncio.timeout(60):
        while not labels or "…" in labels[-1]:
            event = await session.events.get()
            if isinstance(event, Refresh) and (label := await headline(session, path)):
                labels.append(label)
    await session.aclose()
    assert list(dict.fromkeys(labels)) == [
        labels[0],
        labels[0].replace("temp …", "temp 256 B"),
    ]
    assert " · temp … · cpu" in labels[0]


@pytest.mark.usefixtures("cold_cache")
@pytest.mark.skipif(not HAS_HOOK, reason="JAX has no hook: compiles are complete")
@pytest.mark.parametrize(
    ("contract", "is_complete"),
    [("kernels <= 9", False), ("folded <= 1 KiB", False), ("temp <= 1 MiB", True)],
)
async def test_only_contracts_on_memory_compile_completely(
    tmp_path: Path, contract: str, is_complete: bool
) -> None:
    session = session_without_spare()
    path = opened(session, tmp_path, f"\n    Expect: {contract}\n")
    findings: list[Finding] = (await session.report(path, kernels=True)).reported
    early = await outcome(session, path, "normalized", complete=False)
    await session.aclose()
    assert findings == []
    assert isinstance(early, Compiled)
    assert early.is_complete == is_complete


def test_cancelled_compile_ends_at_the_schedule() -> None:
    reply = answer(Compile(1, "cpu", a_sum()), is_cancelled=lambda: HAS_HOOK)
    if HAS_HOOK:
        assert reply == NotCompiled(1, "cancelled", "the compile was cancelled")
    else:
        assert isinstance(reply, Compiled)


def test_the_library_may_compile_beside_other_threads() -> None:
    compiled = threading.Event()
    stopped = threading.Event()

    def compile_others() -> list[float]:
        values = []
        while not stopped.is_set():
            factor = float(len(values) + 1)
            values.append(float(jax.jit(lambda x, factor=factor: x * factor)(1.0)))
            compiled.set()
        return values

    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(compile_others)
        assert compiled.wait(60)
        kernels = [
            jaxsight.kernels(lambda x, n=n: (x * n).sum(), target="cpu")(jnp.ones(64)).kernel_count
            for n in range(30)
        ]
        stopped.set()
        values = others.result()
    assert values == [float(n + 1) for n in range(len(values))]
    assert len(set(kernels[2:])) == 1


@pytest.mark.usefixtures("cold_cache")
@pytest.mark.skipif(not HAS_HOOK, reason="JAX has no hook: compiles are complete")
async def test_complete_answers_are_preferred_also_from_disk(tmp_path: Path) -> None:
    for complete in (True, False):
        session = session_without_spare()
        path = opened(session, tmp_path)
        found = await outcome(session, path, "normalized", complete=complete)
        compiles = session.engine.programs.compiles
        await session.aclose()
        assert isinstance(found, Compiled)
        assert found.is_complete
        assert compiles == complete
