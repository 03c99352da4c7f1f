"""Example inputs on a mesh, in an editor: what is shown, and what is said of wrong ones."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.named_function import view_of
from jaxsight.session import Session
from jaxsight.wire.messages.replies import Traced
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = '''\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P

from meshes import ROWS

MESH = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)


def double(x):
    """
    Example inputs:
        mesh: data=4 explicit
        x: f32[8@data, 4]
    """
    y = x * 2
    return y


def total(x):
    """
    Example inputs:
        mesh: data=4
        x: f32[8@data, 4]
    """
    return jax.shard_map(lambda v: jax.lax.psum(v, "data"), in_specs=P("data"), out_specs=P())(x)


def of_the_module(x):
    """
    Example inputs:
        x: f32[8@(a,b), 4]
    """
    return x + 1


def of_another_module(x):
    """
    Example inputs:
        x: f32[8@rows, 4]
    """
    return x + 1


def of_the_project(x):
    """
    Example inputs:
        x: f32[8, 4@model]
    """
    return jnp.sin(x)


def unsharded(x):
    """
    Example inputs:
        x: f32[8, 4]
    """
    return x * float(jax.sharding.get_abstract_mesh().empty)


def elsewhere(x):
    return x * 3
'''
MESHES = """\
import jax

ROWS = jax.make_mesh((4,), ("rows",), axis_types=(jax.sharding.AxisType.Explicit,))
"""
SETTINGS = """\
[tool.jaxsight]
mesh = "data=2, model=2 explicit"

[tool.jaxsight.examples]
"model:elsewhere" = '''
mesh: data=8 explicit
x: f32[16@data]
'''
"""
NO_MESH = 'import jax\n\n\ndef f(x):\n    """\n    Example inputs:\n        x: f32[4@rows]\n    """\n    return x\n'


EXAMPLE = Path(__file__).parents[2] / "examples" / "sharded.py"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("project")
    Path(folder, "meshes.py").write_text(MESHES)
    Path(folder, "pyproject.toml").write_text(SETTINGS)
    return str(folder / "model.py")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(path: str) -> AsyncIterator[Session]:
    session = session_without_spare()
    session.configure([str(Path(path).parent)], {**QUIET, "python": sys.executable})
    session.open(path, MODEL)
    yield session
    await session.aclose()


async def jaxpr(session: Session, path: str, function: str) -> str:
    return " ".join((await session.show(path, function)).text.split())


async def test_explicit_axes_are_shown_in_types(session: Session, path: str) -> None:
    assert "b:f32[8@data,4] = mul a" in await jaxpr(session, path, "double")


async def test_a_shard_map_finds_the_mesh(session: Session, path: str) -> None:
    assert "psum_invariant[axes=('data',)" in await jaxpr(session, path, "total")


async def test_a_mesh_that_only_the_example_needs_is_made(session: Session, path: str) -> None:
    assert "b:f32[8@(a,b),4] = add a" in await jaxpr(session, path, "of_the_module")
    assert "b:f32[8@rows,4] = add a" in await jaxpr(session, path, "of_another_module")


async def test_the_settings_have_a_mesh_for_arrays_that_name_its_axes(
    session: Session, path: str
) -> None:
    assert "b:f32[8,4@model] = sin a" in await jaxpr(session, path, "of_the_project")
    assert " 1.0:f32[]" in await jaxpr(session, path, "unsharded")
    assert "b:f32[16@data] = mul a" in await jaxpr(session, path, "elsewhere")


async def test_another_mesh_is_another_question(session: Session, path: str) -> None:
    session.change(path, MODEL.replace("mesh: data=4 explicit", "mesh: data=2 auto"))
    assert "b:f32[8,4] = mul a" in await jaxpr(session, path, "double")
    session.change(path, MODEL)
    assert "b:f32[8@data,4] = mul a" in await jaxpr(session, path, "double")


async def test_an_axis_that_no_mesh_has_is_marked(session: Session, path: str) -> None:
    bare = str(Path(path).parent / "bare.py")
    session.open(bare, NO_MESH)
    (finding,) = (await session.report(bare)).reported
    marked = NO_MESH.splitlines()[finding.range.start.line]
    assert marked[finding.range.start.column : finding.range.end.column] == "rows"
    assert (finding.code, finding.message) == ("JX906", "unknown mesh axis `rows`")
    assert finding.help == "add `mesh: rows=2`"


@pytest.mark.parametrize(
    ("function", "output"),
    [
        ("automatic", "bf16[32,512]"),
        ("explicit", "bf16[32@data,512]"),
        ("manual", "bf16[32,512]"),
    ],
)
async def test_the_example_is_traced_in_each_way_to_shard(
    session: Session, function: str, output: str
) -> None:
    session.open(str(EXAMPLE), EXAMPLE.read_text(encoding="utf-8"))
    reply = (await view_of(session.engine, str(EXAMPLE), function)).answer.reply
    assert isinstance(reply, Traced), reply
    assert reply.outputs == output
