"""Programs of several devices: they are compiled for as many, and figures say so."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jaxsight.features.named_function import compiled_function
from jaxsight.figures.program_notes import notes
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.source.text import Position
from tests.sessions import session_without_spare

SERVER = Path(__file__).parents[2] / "server"
MODEL = '''\
import functools

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("q",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("q"))
ON_THE_MESH = jax.device_put(jnp.ones((8, 8)), rows)


def mapped(x):
    """
    Example inputs:
        x: f32[8, 3]
    """
    return jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(x)


def manual(x):
    """
    Example inputs:
        x: f32[8]
    """
    total = functools.partial(jax.lax.psum, axis_name="q")
    return jax.shard_map(total, mesh=mesh, in_specs=P("q"), out_specs=P())(x)


def constrained(x):
    """
    Example inputs:
        x: f32[8, 8]
    """
    return jax.lax.with_sharding_constraint(x, rows).sum(0)


def put(x):
    """
    Example inputs:
        x: f32[8, 8]
    """
    return jax.device_put(x, rows).sum(0)


@functools.partial(jax.jit, in_shardings=rows)
def placed(x):
    """
    Example inputs:
        x: f32[8, 8]
    """
    return x.sum(0)


def given(x):
    """
    Example inputs:
        x = ON_THE_MESH
    """
    return x.sum(0)


def called(x):
    return x.sum(0)


called(ON_THE_MESH)


def helped(x):
    return x.sum(0)


helped(2 * jax.device_put(jnp.ones((8, 8)), rows))


class State:
    def __init__(self):
        self.value = jax.device_put(jnp.ones((8, 8)), rows)


STATE = State()


def steps(x):
    """
    Example inputs:
        x: f32[8, 8]
    """
    STATE.value = STATE.value + x
    return STATE.value.sum(0)


def updates(state, x):
    """
    Example inputs:
        state = State()
        x: f32[8, 8]
    """
    state.value = state.value + x
    return state.value.sum(0)


def indexed(x):
    """
    Example inputs:
        x: f32[8]
    """
    mesh = jax.sharding.Mesh([jax.devices()[at] for at in range(8)], ("a",))
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("a")))


def single(x):
    """
    Example inputs:
        x: f32[8, 8]
    """
    return x @ ON_THE_MESH
'''
SPANS = {
    "mapped": 8,
    "manual": 4,
    "constrained": 4,
    "put": 4,
    "placed": 4,
    "given": 4,
    "called": 4,
    "helped": 4,
    "steps": 4,
    "updates": 4,
    "indexed": 8,
}


def jaxsight(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jaxsight", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SERVER), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("shardy", [True, False])
async def test_programs_of_several_devices_are_compiled_for_as_many(
    tmp_path: Path, shardy: bool
) -> None:
    option = f"import jax\njax.config.update('jax_use_shardy_partitioner', {shardy})\n"
    path = str(tmp_path / "model.py")
    session = session_without_spare()
    session.configure([str(tmp_path)], {"python": sys.executable, "target": "cpu"})
    session.open(path, option + MODEL)
    try:
        await session.background.settle(path, patience=240)
        kernels = {
            name: (await compiled_function(session.engine, path, name, complete=True))[1]
            for name in SPANS
        }
    finally:
        await session.aclose()
    figures = {name: each for name, each in kernels.items() if isinstance(each, LocatedFigures)}
    assert {name: each.compiled.devices for name, each in figures.items()} == SPANS
    assert {each.compiled.how for each in figures.values()} == {"simulated"}


LARGE = '''\
import jax
import jax.numpy as jnp


def f(x, w):
    """
    Example inputs:
        mesh: model=8
        x: f32[1024, 2048@model]
        w: f32[2048@model, 4096]
    Expect: temp < 0 B, moved <= 1 KiB
    """
    y = jnp.sin(x @ w)
    return y / y.sum(1, keepdims=True) @ y.T
'''
AMOUNT = re.compile(r"\d(?:\.\d)? (?:B|[KMG]iB)\b")


async def test_every_amount_of_memory_says_that_it_is_of_one_device(tmp_path: Path) -> None:
    path = str(tmp_path / "model.py")
    session = session_without_spare()
    session.configure([str(tmp_path)], {"python": sys.executable, "target": "cpu"})
    session.open(path, LARGE)
    try:
        await compiled_function(session.engine, path, "f", complete=True)
        hints = await session.hints(path, wait=True)
        shown = [f"{hint.label}\n{hint.tooltip}" for hint in hints]
        hover = await session.hover(path, Position(4, 5))
        shown.append(hover.markdown if hover else "")
        shown.append((await session.show(path, "f", "kernels")).text)
        findings = (await session.report(path, kernels=True)).reported
        shown += ["\n".join(finding.lines) for finding in findings]
        panel = await session.panel(path, "f")
    finally:
        await session.aclose()
    assert panel is not None
    assert panel.figures is not None
    shown.append("\n".join([panel.figures.headline, *notes(panel.figures)]))
    amounts = [text for text in shown if AMOUNT.search(text)]
    assert len(amounts) >= 6, shown
    assert [text for text in amounts if "device" not in text] == []


@pytest.mark.slow
def test_a_program_that_captures_an_array_of_a_mesh_runs_on_one_device(tmp_path: Path) -> None:
    Path(tmp_path, "model.py").write_text(MODEL)
    run = jaxsight("kernels", "model.py:single", "--target", "cpu", "--json", cwd=tmp_path)
    assert json.loads(run.stdout)["kernel_count"] >= 1, run.stderr


def test_arguments_on_a_mesh_are_shown_with_their_global_shapes(tmp_path: Path) -> None:
    Path(tmp_path, "model.py").write_text(MODEL)
    run = jaxsight("show", "model.py:given", cwd=tmp_path)
    assert run.stdout.startswith("given(x: f32[8@q,8]) -> f32[8]\n"), run.stderr
