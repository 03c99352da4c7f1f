"""Functions without example inputs are shown as those with example inputs call them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.named_function import view_of
from jaxsight.session import Session
from jaxsight.source.text import Position
from jaxsight.wire.messages.requests import TransformedSource
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = '''\
import jax
import jax.numpy as jnp


def rms(x, eps=1e-6):
    """Normalize."""
    scale = jnp.mean(x * x, axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(scale + eps)


def lookup(x, i):
    return x[jnp.array([7])]
'''

TRAIN = '''\
import jax
from model import lookup, rms


def half(x):
    h = x[::2]
    return h


def total(x):
    return jax.lax.psum(x, "i")


depths = []


def deep(x):
    return x * depths[0]


def loss(x):
    """
    Example inputs:
        x: f32[32, 8]
    """
    y = jax.vmap(rms)(x)
    return lookup(half(y)[0], 1)


def score(x):
    """
    Example inputs:
        x: f32[4, 3]
    """
    return half(x) + half(x.astype("bfloat16"))
'''


SETTINGS: dict[str, object] = {**QUIET, "python": sys.executable, "target": "cpu"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text("", "utf-8")
    (folder / "model.py").write_text(MODEL, "utf-8")
    (folder / "train.py").write_text(TRAIN, "utf-8")
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(project: Path) -> AsyncIterator[Session]:
    session = session_without_spare()
    session.configure([str(project)], SETTINGS)
    yield session
    await session.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def session(running: Session, project: Path) -> AsyncIterator[Session]:
    """A session with both files open."""
    for name in ("train.py", "model.py"):
        running.open(str(project / name), (project / name).read_text("utf-8"))
    yield running
    for name in ("train.py", "model.py"):
        running.close(str(project / name))


async def titles(session: Session, path: Path, function: str) -> list[str]:
    """The titles of the lenses above a function, from the first one on."""
    lenses = await session.lenses(str(path))
    return [lens.title for lens in lenses if lens.arguments[1:2] == (function,)]


async def becomes(session: Session, path: Path, function: str, title: str | None) -> None:
    """Wait until the first lens above a function has a title, or until there is none.

    An editor asks again after each event.
    """
    async with asyncio.timeout(120):
        while (await titles(session, path, function) or [None])[0] != title:
            await session.events.get()


async def hints(session: Session, path: Path) -> dict[str, str]:
    """The hints by the first word of their line, once all programs have run."""
    await session.background.settle(str(path), patience=240)
    document = session.engine.documents.get(str(path))
    assert document is not None
    lines = document.text.splitlines()
    return {
        lines[hint.range.start.line].split()[0]: hint.label
        for hint in await session.hints(str(path), wait=True)
    }


async def test_a_function_of_another_file_is_shown_as_called(
    session: Session, project: Path
) -> None:
    model = project / "model.py"
    await becomes(session, model, "rms", "as called in train.py:26")
    assert await titles(session, model, "rms") == [
        "as called in train.py:26", "jaxpr", "kernels", "sourcerize", "measure",
    ]  # fmt: skip
    assert (await hints(session, model))["scale"] == ": f32[1]"  # as inside of the vmap
    hover = await session.hover(str(model), Position(4, 5))
    assert hover is not None
    assert "rms(x: f32[8], eps: 1e-06) -> f32[8]" in hover.markdown
    assert "traced as called in train.py:26" in hover.markdown
    assert "rsqrt" in (await session.show(str(model), "rms")).text
    assert "def rms" in (await session.show(str(model), "rms", TransformedSource("pretty"))).text


async def test_an_edit_of_a_caller_is_followed(session: Session, project: Path) -> None:
    train, model = project / "train.py", project / "model.py"
    await becomes(session, model, "rms", "as called in train.py:26")
    session.change(str(train), TRAIN.replace("x: f32[32, 8]", "x: f32[32, 16]"))
    async with asyncio.timeout(120):
        while "x: f32[16]" not in (await session.hover(str(model), Position(4, 5))).markdown:
            await session.events.get()
    session.change(str(train), TRAIN.replace("jax.vmap(rms)(x)", "x"))
    await becomes(session, model, "rms", None)
    session.change(str(train), TRAIN.replace("jax.vmap(rms)(x)", "rms(x)"))
    await becomes(session, model, "rms", "as called in train.py:26")
    session.close(str(train))  # that on disk calls it, too
    async with asyncio.timeout(120):
        while "x: f32[8]" not in (await session.hover(str(model), Position(4, 5))).markdown:
            await session.events.get()


async def test_the_lens_chooses_among_callers(session: Session, project: Path) -> None:
    train = project / "train.py"
    assert (await hints(session, train))["h"] == ": f32[16,8]"
    assert session.sets(str(train), "half") == [
        "as called by `loss`", "as called by `score`", "as called by `score` 2",
    ]  # fmt: skip
    session.choose_set(str(train), "half", "as called by `score` 2")
    assert (await hints(session, train))["h"] == ": bf16[2,3]"
    assert (await titles(session, train, "half"))[0] == "as called by `score` 2 (3 of 3)"
    session.choose_set(str(train), "half", "as called by `loss`")


async def test_equal_calls_are_one_set(session: Session, project: Path) -> None:
    train = project / "train.py"
    session.change(str(train), TRAIN.replace("x: f32[4, 3]", "x: f32[32, 8]"))
    await hints(session, train)
    assert session.sets(str(train), "half") == [
        "as called by `loss`", "as called by `score`",
    ]  # fmt: skip


async def test_figures_are_stale_while_a_caller_fails(session: Session, project: Path) -> None:
    train = project / "train.py"
    assert (await hints(session, train))["h"] == ": f32[16,8]"
    failing = TRAIN.replace("jax.vmap(rms)(x)", "jax.vmap(rms)(x).undefined")
    failing = failing.replace("half(x) + half", "x + x or half")
    session.change(str(train), failing)
    await hints(session, train)
    hover = await session.hover(str(train), Position(4, 5))
    assert hover is not None
    assert hover.stale
    session.change(str(train), TRAIN)
    await hints(session, train)
    hover = await session.hover(str(train), Position(4, 5))
    assert hover is not None
    assert not hover.stale


async def test_a_function_that_is_not_traced_alone_is_left_to_its_caller(
    session: Session, project: Path
) -> None:
    train = project / "train.py"
    state = "depths.append(2)\n    y = deep(x)\n    depths.clear()"
    session.change(str(train), TRAIN.replace("y = jax.vmap(rms)(x)", state))
    await hints(session, train)
    assert await titles(session, train, "half")
    assert await titles(session, train, "deep") == []
    assert (await session.report(str(train))).reported == []


async def test_a_function_with_an_axis_of_its_caller_is_traced_without_its_others(
    session: Session, project: Path
) -> None:
    train = project / "train.py"
    session.change(str(train), TRAIN.replace("jax.vmap(rms)", "jax.vmap(total, axis_name='i')"))
    await hints(session, train)
    assert (await titles(session, train, "total"))[0] == "as called by `loss`"
    (caveat,) = (await view_of(session.engine, str(train), "total")).caveats
    assert (
        caveat.reason
        == "`def total(x):` names the axis `i`, which nothing here binds: traced with a size of 1"
    )
    assert (await session.report(str(train))).reported == []


async def test_findings_are_reported_once_and_where_they_are(
    session: Session, project: Path
) -> None:
    train, model = project / "train.py", project / "model.py"
    await becomes(session, model, "lookup", "as called in train.py:27")
    await hints(session, model)
    found = [(f.code, f.range.start.line) for f in (await session.report(str(model))).reported]
    assert found == []
    session.change(str(model), MODEL.replace("[7]", "[9]"))
    await hints(session, model)
    (finding,) = (await session.report(str(model))).reported
    assert (finding.code, finding.range.start.line) == ("JX404", 11)
    own = TRAIN.replace("h = x[::2]", "h = x[::2]\n    h = h.at[99].set(0)")
    session.change(str(train), own)
    await hints(session, train)
    assert [f.code for f in (await session.report(str(train))).reported] == ["JX404"]


async def test_the_setting_switches_it_off(session: Session, project: Path) -> None:
    train, model = project / "train.py", project / "model.py"
    await becomes(session, model, "rms", "as called in train.py:26")
    session.configure([str(project)], {**SETTINGS, "examplesFromPrograms": False})
    await hints(session, train)
    await becomes(session, model, "rms", None)
    assert session.engine.documents.functions(str(train)) == ["loss", "score"]
    session.configure([str(project)], SETTINGS)
