"""Top-level statements show what they compute, with functions in the file and without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxsight.session import Session
from jaxsight.source.text import Position

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n"
PROGRAMS = {
    # Each line with what is shown after its target; one without shows nothing.
    "values": ("x = jnp.ones((3, 4))", "f32[3,4]"),
    "two targets": ("y, z = jnp.ones(2), jnp.zeros((2, 2), bool)", "f32[2]"),
    "a tree": ("params = {'w': jnp.ones((4, 2)), 'b': 3}", "{'w': f32[4,2], 'b': 3}"),
    "a key": ("key = jax.random.key(0)", "key<fry>[]"),
    "a transformation": ("s = jax.vmap(lambda r: r.sum())(jnp.ones((5, 4)))", "f32[5]"),
    "a jitted lambda": ("t = jax.jit(lambda r: r * 2)(jnp.ones((5, 4)))", "f32[5,4]"),
    "a loop": ("for i in range(3):\n    u = jnp.ones(7) * i", "f32[7]"),
    "a context": ("with jax.numpy_dtype_promotion('standard'):\n    v = jnp.ones(9)", "f32[9]"),
    "a condition": ("if len(jax.devices()) > 0:\n    w = jnp.ones(8)", "f32[8]"),
    "NumPy": ("n = jnp.asarray(np.arange(6))", "i32[6]"),
    "an attribute": ("a = jnp.ones((3, 4)).T", "f32[4,3]"),
    "an annotation": ("b: jax.Array = jnp.ones(11)", "f32[11]"),
    "a loop that compiles": (
        "@jax.jit\ndef g(q):\n    return q * 2\n\n\nr = jnp.ones(5)\nfor i in range(9):\n    r = g(r)",
        "f32[5]",
    ),
    "the guard": ('if __name__ == "__main__":\n    g = jnp.ones((6, 2))', "f32[6,2]"),
    "a loop in the guard": (
        'if __name__ == "__main__":\n    h = jnp.ones(3)\n    for i in range(9):\n        h = h * i',
        "f32[3]",
    ),
    "data that is not there": ("c = jnp.asarray(np.load('not_there.npy'))", ""),
}
FUNCTION = "\n\ndef f(x):\n    return jnp.sin(x)\n"


async def labels(session: Session, path: str) -> dict[int, str]:
    """The first label of each line."""
    hints = await session.hints(path, wait=True)
    return {hint.range.start.line: hint.label for hint in reversed(hints) if not hint.stale}


@pytest.mark.parametrize("more", ["", FUNCTION], ids=["alone", "beside a function"])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_statement_shows_what_it_computes(
    name: str, more: str, project: tuple[Session, Path]
) -> None:
    own, root = project
    statement, said = PROGRAMS[name]
    path = str(root / f"top_{list(PROGRAMS).index(name)}{bool(more)}.py")
    text = f"{HEAD}{statement}\n{more}"
    own.open(path, text)
    await own.background.settle(path, patience=240)
    shown = await labels(own, path)
    line = text.split("\n").index(statement.split("\n")[-1])
    assert shown.get(line, "") == (f": {said}" if said else "")
    content = text.split("\n")[line]
    hover = await own.hover(path, Position(line, len(content) - len(content.lstrip())))
    assert not said or (hover is not None and "as in a run of this file" in hover.markdown)
    own.close(path)


async def test_an_edit_is_followed(project: tuple[Session, Path]) -> None:
    own, root = project
    path = str(root / "edited.py")
    text = f"{HEAD}x = jnp.ones((3, 4))\ny = x.T\n"
    own.open(path, text)
    await own.background.settle(path, patience=240)
    assert await labels(own, path) == {4: ": f32[3,4]", 5: ": f32[4,3]"}
    own.change(path, text.replace("(3, 4)", "(5, 4)"))
    await own.background.settle(path, patience=240)
    assert await labels(own, path) == {4: ": f32[5,4]", 5: ": f32[4,5]"}
    own.change(path, text.replace("x.T", "x.T @ x.T"))
    await own.background.settle(path, patience=240)
    assert await labels(own, path) == {4: ": f32[3,4]"}
    (finding,) = (await own.report(path)).reported
    assert (finding.code, finding.range.start.line) == ("JX330", 5)
    own.close(path)


async def test_cells_show_what_they_compute(project: tuple[Session, Path]) -> None:
    own, root = project
    path = root / "cells.ipynb"
    sources = [HEAD, "x = jnp.ones((3, 4))", "y = x @ x.T"]
    cells = [{"cell_type": "code", "source": source, "metadata": {}} for source in sources]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}))
    own.open(str(path), "\n".join(sources))
    await own.background.settle(str(path), patience=240)
    shown = await labels(own, str(path))
    assert sorted(shown.values()) == [": f32[3,3]", ": f32[3,4]"]
    own.close(str(path))
