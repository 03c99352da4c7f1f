"""The code action *Keep these inputs* writes those that a function is shown with."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.rules.fixing.context import applied
from jaxsight.session import Session
from jaxsight.source.text import Position, Range

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HEAD = "import jax\nimport jax.numpy as jnp\n\n\n"
KEPT = {
    "arrays": (
        "def f(pos, mass):\n    return jnp.sum(pos * mass)\n",
        "f(jnp.ones((360, 3)), jnp.ones((360, 1)))",
        "pos: f32[360, 3], mass: f32[360, 1]",
    ),
    "a tree": (
        "def f(params, n=2):\n    return jnp.sum(params['w']) * n\n",
        "f({'w': jnp.ones(4)}, n=3)",
        "params: {'w': f32[4]}, n: 3",
    ),
    "under vmap": (
        "def f(x):\n    return jnp.sum(x)\n",
        "jax.vmap(f)(jnp.ones((5, 3)))",
        "x: f32[3]",
    ),
    "unknown": ("def f(x):\n    return jnp.sum(x)\n", "f(jnp.asarray(open('none').read()))", ""),
    "written": (
        'def f(x):\n    """\n    Example inputs:\n        x: f32[3]\n    """\n    return x\n',
        "f(jnp.ones(4))",
        "",
    ),
}


@pytest.mark.parametrize("name", KEPT)
async def test_the_inputs_in_use_are_kept(name: str, project: tuple[Session, Path]) -> None:
    own, root = project
    function, call, inputs = KEPT[name]
    text = f"{HEAD}{function}\n\n{call}\n"
    path = str(root / f"kept_{'_'.join(name.split())}.py")
    own.open(path, text)
    await own.background.settle(path, patience=240)
    place = Position(4, 4)
    actions = await own.actions(path, Range(place, place))
    kept = [action for action in actions if action.title.startswith("Keep these inputs")]
    assert [action.title for action in kept] == [f"Keep these inputs: {inputs}"] * bool(inputs)
    for action in kept:
        changed = applied(text, action.edits)
        own.change(path, changed)
        await own.background.settle(path, patience=240)
        hover = await own.hover(path, place)
        assert hover is not None
        assert "Example inputs:" in changed
        assert "as in" not in hover.markdown
        assert "f(" in hover.markdown
    own.close(path)
