"""`jaxsight/panel`: the kernel graph of the function at the cursor, in one answer."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types

from jaxsight.text.units import size
from tests.e2e.editor import VSCODE, Editor, opened
from tests.vscode.project import TRAINING

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOOP = '''\
import jax
import jax.numpy as jnp


def power(m, v):
    """
    Example inputs:
        m: f32[64, 64]
        v: f32[64]
    """
    def step(v, _):
        w = m @ v
        return jnp.sort(w / jnp.sum(w)), None  # without a sort, one unit of XLA's does the loop
    return jax.lax.scan(step, v, length=7)[0]
'''


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on_cpu(project: Path) -> AsyncIterator[Editor]:
    """An editor for the tests that change neither target nor settings, each with its own file."""
    async with opened(VSCODE, project, target="cpu") as editor:
        yield editor


async def test_panel_tells_kernels_by_the_equations_and_where_they_are_written(
    on_cpu: Editor, project: Path
) -> None:
    uri = (project / "loop.py").as_uri()
    on_cpu.open(uri, LOOP)
    shown = await on_cpu.ask("jaxsight/panel", uri=uri, position={"line": 11, "character": 10})
    assert (shown["function"], shown["target"], shown["stale"]) == ("power", "cpu", False)
    drawn = shown["drawn"]
    assert drawn["headline"].endswith("cpu")
    loops = [loop for loop in drawn["loops"] if loop["trips"] == 7]
    assert loops, "the scan's"
    inside = [kernel for kernel in drawn["kernels"] if kernel["loops"]]
    assert {kernel["launches"] for kernel in inside} >= {7}
    equations: dict[str, Any] = {equation["path"]: equation for equation in drawn["equations"]}
    lines = {
        equations[path]["place"]["range"]["start"]["line"]
        for kernel in inside
        for path in kernel["equations"]
    }
    assert lines >= {11, 12}, "the loop's body"
    assert "m @ v" in {equation["text"] for equation in equations.values()}
    for edge in drawn["edges"]:
        for end in (edge["source"], edge["target"]):
            assert 0 <= end["index"] < len(drawn[f"{end['what']}s"])
    params = types.TextDocumentContentParams(shown["documents"]["hlo"])
    hlo = (await on_cpu.workspace_text_document_content_async(params)).text
    for kernel in drawn["kernels"]:
        assert kernel["name"] in hlo.split("\n")[kernel["line"]]
    assert (drawn["before"], drawn["change"]) == (None, "the same")


WAITING = '''\
import jax
import jax.numpy as jnp


def waiting(x, p):
    """
    Example inputs:
        x: f32[64, 64]
        p: i32[]
    """
    def arm(c):
        return jnp.sin(c @ c) @ c

    def body(c):
        return jax.lax.cond(p > 0, arm, jnp.cos, c) @ x

    def step(_, x):
        return jax.lax.while_loop(lambda c: jnp.sum(c) < 10.0, body, x)

    return jax.lax.fori_loop(0, 7, step, x)
'''


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
async def test_panel_says_what_values_decide_of_the_launches(tmp_path: Path) -> None:
    uri = (tmp_path / "waiting.py").as_uri()
    async with opened(VSCODE, tmp_path, target="cuda:h100") as editor:
        editor.open(uri, WAITING)
        shown = await editor.ask("jaxsight/panel", uri=uri, function="waiting")
    drawn = shown["drawn"]
    kernels = drawn["kernels"]
    (counted,) = [index for index, loop in enumerate(drawn["loops"]) if loop["trips"] == 7]
    (unknown,) = [index for index, loop in enumerate(drawn["loops"]) if loop["trips"] is None]
    assert [drawn["loops"][index]["waits"] for index in (counted, unknown)] == [False, True]
    assert f"≥ {drawn['launchesAtLeast']} launches" in drawn["headline"]
    inside = [kernel for kernel in kernels if unknown in kernel["loops"]]
    assert not any(kernel["launchesKnown"] for kernel in inside)
    assert all(kernel["launchesKnown"] for kernel in kernels if kernel not in inside)
    assert any(kernel["launches"] == 0 for kernel in kernels if kernel["loops"] == [counted])
    # Of one iteration, not of the seven around it: all but the smaller arm.
    arms = [
        sum(kernel["launches"] for kernel in inside if kernel["branch"] == arm) // 7
        for arm in range(len(drawn["branches"]))
    ]
    launches = sum(kernel["launches"] for kernel in inside) // 7 - min(arms)
    arm = f"one of 2 arms runs (up to {max(arms)} launches); the host reads its predicate first"
    said = [note for note in drawn["notes"] if note.startswith(("loop", "conditional"))]
    assert said == [
        f"loop at line 18: unknown number of iterations, up to {launches} launches each",
        "loop at line 18: each iteration copies its condition to the host and waits",
        f"conditional at line 15: {arm}",
    ]
    assert max(map(len, drawn["notes"])) <= 100
    paths = {equation["path"] for equation in drawn["equations"]}
    copies = [kernel for kernel in kernels if not kernel["equations"]]
    assert copies, "of what the loop carries"
    assert all(kernel["feeds"] and paths.issuperset(kernel["feeds"]) for kernel in copies)


async def drawn_with_memory(editor: Editor, uri: str) -> Any:
    """Return what is drawn of `power` once its memory is known: it comes after the kernels."""
    refreshes = 0
    while True:
        drawn = (await editor.ask("jaxsight/panel", uri=uri, function="power"))["drawn"]
        if drawn["memory"] is not None:
            return drawn
        refreshes += 1
        await editor.receive("jaxsight/panelRefresh", refreshes)


async def test_panel_tells_what_the_function_was_when_it_was_saved(
    on_cpu: Editor, project: Path
) -> None:
    uri = (project / "saved.py").as_uri()
    on_cpu.open(uri, LOOP)
    before = await drawn_with_memory(on_cpu, uri)
    on_cpu.edit(uri, 2, LOOP.replace("[0]\n", "[0] @ m\n"))
    drawn = (await on_cpu.ask("jaxsight/panel", uri=uri, function="power"))["drawn"]
    assert "→" in drawn["change"]
    assert drawn["before"]["memory"] == before["memory"]
    assert len(drawn["before"]["kernels"]) == len(before["kernels"]) < len(drawn["kernels"])


async def test_panel_does_not_guess_what_it_was_on_another_target(tmp_path: Path) -> None:
    uri = (tmp_path / "loop.py").as_uri()
    async with opened(VSCODE, tmp_path, target="cpu") as editor:
        editor.open(uri, LOOP)
        await editor.ask("jaxsight/panel", uri=uri, function="power")
        editor.edit(uri, 2, LOOP.replace("[0]\n", "[0] @ m\n"))
        await editor.execute("jaxsight.chooseTarget", "cuda:h100")
        shown = await editor.ask("jaxsight/panel", uri=uri, function="power")
        assert shown["target"] == "cuda:h100"
        # Where its compiler is not installed there is nothing to draw, but the words.
        if (drawn := shown["drawn"]) is not None:
            assert (drawn["before"], drawn["change"]) == (None, "")


async def test_panel_says_why_there_is_nothing_to_draw(on_cpu: Editor, project: Path) -> None:
    uri = (project / "broken.py").as_uri()
    on_cpu.open(uri, LOOP.replace("m @ v", "m @ nothing"))
    shown = await on_cpu.ask("jaxsight/panel", uri=uri, function="power")
    assert shown["drawn"] is None
    assert "power cannot be traced" in shown["trouble"]
    assert "nothing" in shown["trouble"]


async def test_panel_and_documents_say_what_was_not_run(on_cpu: Editor, project: Path) -> None:
    uri = (project / "not_run.py").as_uri()
    text = LOOP.replace("\n\n\ndef", "\n\nSCALE = 2.0\nSCALE = 3.0  # jaxsight: never\n\n\ndef", 1)
    text = text.replace("m @ v", "SCALE * m @ v")
    reason = "`SCALE = 3.0` was not run (marked `never`) and may change `SCALE`"
    on_cpu.open(uri, text)
    shown = await on_cpu.ask("jaxsight/panel", uri=uri, function="power")
    assert shown["complete"] is False
    assert shown["caveats"] == [{"line": 5, "reason": reason}]
    drawn = shown["drawn"]
    assert drawn["headline"].endswith("cpu · ⚠ 1 caveat")
    assert drawn["notes"][0] == f"line 5: {reason}"
    hlo = await on_cpu.linked_content(shown["documents"]["hlo"])
    lines = hlo["text"].split("\n")
    assert lines[0] == f"// note: line 5: {reason}"
    for kernel in drawn["kernels"]:
        assert kernel["name"] in lines[kernel["line"]]
    jaxpr = await on_cpu.linked_content(shown["documents"]["jaxpr"])
    first, *following = jaxpr["text"].split("\n")
    assert first == f"# note: line 5: {reason}"
    assert following[0].startswith("{ lambda")
    assert min(link["line"] for link in jaxpr["links"]) > 0


SHARDED = '''\
import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def product(x, w):
    """
    Example inputs:
        mesh = mesh
        x: f32[64@data, 256@model]
        w: f32[256@model, 128]
    """
    return x @ w
'''


async def test_panel_has_the_collectives_and_layouts_of_several_devices(tmp_path: Path) -> None:
    uri = (tmp_path / "sharded.py").as_uri()
    async with opened(VSCODE, tmp_path, target="cpu:8") as editor:
        editor.open(uri, SHARDED)
        shown = await editor.ask("jaxsight/panel", uri=uri, function="product")
        drawn = shown["drawn"]
        assert (drawn["devices"], drawn["mesh"]) == (8, "data=2, model=4")
        (kernel,) = [kernel for kernel in drawn["kernels"] if kernel["collective"]]
        collective = kernel["collective"]
        assert kernel["kind"] == "collective"
        assert (collective["kind"], collective["scope"]) == ("all-reduce", "over model")
        assert (collective["bytes"], collective["inserted"]) == (16384, True)
        assert collective["groups"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert "inserted by the partitioner (Shardy) for `x @ w`" in kernel["description"]
        divided = [each["divided"] for each in drawn["equations"] if each["text"] == "x @ w"]
        assert {
            "text": "f32[64@data,128]",
            "local": "f32[32,128]",
            "cells": [[[0, 1, 2, 3]], [[4, 5, 6, 7]]],
        } in divided


def described(drawn: dict[str, Any], kernel: dict[str, Any]) -> tuple[str, ...]:
    """Return the titles of the groups around a kernel, outermost first."""
    titles: list[str] = []
    group = kernel["group"]
    while group >= 0:
        titles.insert(0, drawn["groups"][group]["title"])
        group = drawn["groups"][group]["parent"]
    return tuple(part for title in titles for part in title.split(" › "))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
async def test_kernels_of_a_training_step_are_grouped_by_halves_layers_and_calls(
    tmp_path: Path,
) -> None:
    text = TRAINING.replace("LAYERS", "3")
    uri = (tmp_path / "train.py").as_uri()
    lines = text.split("\n")
    async with opened(VSCODE, tmp_path, target="cuda:h100") as editor:
        editor.open(uri, text)
        shown = await editor.ask("jaxsight/panel", uri=uri, function="train_step")
        drawn = shown["drawn"]
        groups = [described(drawn, kernel) for kernel in drawn["kernels"]]
        assert {group[0] for group in groups if group} == {"forward pass", "backward pass", "adam"}
        for half in ("forward pass", "backward pass"):
            layers = [group[2] for group in groups if group[:2] == (half, "loss_fn") and group[2:]]
            blocks = list(dict.fromkeys(name for name in layers if name.startswith("block")))
            assert sorted(blocks) == ["block 1/3", "block 2/3", "block 3/3"]
            # The backward pass runs through the layers in the opposite order.
            assert blocks == sorted(blocks, reverse=half == "backward pass")
            inside = {group[3] for group in groups if group[0] == half and len(group) > 3}
            assert {"attention", "mlp"} <= inside <= {"attention", "mlp", "layer_norm"}
        places = {
            title: lines[group["place"]["range"]["start"]["line"]].strip()
            for group in drawn["groups"]
            if group["place"] is not None
            for title in [group["title"].split(" › ")[0]]
        }
        assert places["adam"] == "params, m, v = adam(params, grads, m, v)"
        assert places["block 2/3"] == "x = block(p, x)"
        names = [parameter["name"] for parameter in drawn["parameters"]]
        assert {"params['embed']", "m['blocks'][2]['up']", "tokens"} <= set(names)

        texts = {
            kind: (await editor.linked_content(shown["documents"][kind]))
            for kind in ("hlo", "hlo-metadata")
        }
        plain, full = (texts[kind]["text"].split("\n") for kind in ("hlo", "hlo-metadata"))
        assert len(plain) == len(full)
        assert "metadata={" not in texts["hlo"]["text"]
        assert "metadata={" in texts["hlo-metadata"]["text"]
        assert texts["hlo"]["links"] == texts["hlo-metadata"]["links"]
        assert all(kernel["name"] in plain[kernel["line"]] for kernel in drawn["kernels"])

        hover = await editor.hover_text(
            uri, lines.index("def train_step(params, m, v, tokens):"), 6
        )
        count = f"| cuda:h100 | {drawn['headline'].partition(' ')[0]} | "
        order = [hover.index(part) for part in (count, "train_step(\n", "```jaxpr\n")]
        assert order == sorted(order)
        assert hover.split("```jaxpr\n")[1].split("```")[0].count("\n") <= 13

        lenses = [
            lens
            for lens in await editor.lenses(uri)
            if lens.command is not None and "train_step" in (lens.command.arguments or ())
        ]
        assert {lens.range.start.line for lens in lenses} == {lines.index("@functools.partial(")}
        titles = [lens.command.title for lens in lenses if lens.command is not None]
        number, most = drawn["headline"].partition(" ")[0], drawn["assignedAtMost"]
        assert most > drawn["assigned"]
        assert titles[2] == f"kernels: {number} · ≤ {size(most)}"
        await editor.execute(lenses[0].command)
        (went,) = await editor.receive("window/showDocument")
        assert (went.uri, went.selection.start.line) == (uri, lines.index("    Example inputs:"))
