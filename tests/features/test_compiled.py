"""What a file's own program compiles has kernels; what it runs op by op says so instead."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxsight.features.named_function import compiled_function
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.rules.fixing.context import applied
from jaxsight.session import Session
from jaxsight.source.text import Position, Range
from tests.quiet import QUIET

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HEAD = (
    "import functools\nimport jax\nimport jax.numpy as jnp\nfrom not_there import show\n\n\n"
    "def {f}(x, n=None):\n    return jnp.sum(jnp.sin(x))\n\n\n"
)
ROOT = "@jax.jit\ndef root(x):\n    return jnp.cos(x)\n\n\nroot(jnp.ones(3))\n"
COMPILED = {
    "jit": "jax.jit({f})(x)",
    "jit of a partial": "jax.jit(functools.partial({f}, n=2))(x)",
    "lower": "jax.jit({f}).lower(x)",
    "by a helper that is not there": "show(jax.jit({f}), x)",
    "once at least": "{f}(x)\njax.jit({f})(x)",
}
PARTS = {
    "jit of a gradient": "jax.jit(jax.grad({f}))(x)",
    "jit of vmap": "jax.jit(jax.vmap({f}))(x)",
    "vmap of jit": "jax.vmap(jax.jit({f}))(x)",
    "gradient of jit": "jax.grad(jax.jit({f}))(x)",
    "scan": "jax.lax.scan(lambda c, r: (c + {f}(r), c), 0.0, x)",
    "cond": "jax.lax.cond(True, {f}, {f}, x)",
    "while": "jax.lax.while_loop(lambda c: c < {f}(x), lambda c: c + 1, 0.0)",
    "fori": "jax.lax.fori_loop(0, 3, lambda i, c: c + {f}(x), 0.0)",
    "map": "jax.lax.map({f}, x)",
    "by a lambda": "jax.jit(lambda x: {f}(x) + 1)(x)",
}
"""Programs without one function that is all of them."""
INSIDE = {
    "by a function": "def g(x):\n    return {f}(x)\n\n\njax.jit(g)(x)",
    "by a decorated function": "@jax.jit\ndef g(x):\n    return {f}(x)\n\n\ng(x)",
    "under a gradient": "@jax.jit\ndef g(x):\n    return jax.grad({f})(x)\n\n\ng(x)",
    "under vmap": "@jax.jit\ndef g(x):\n    return jax.vmap({f})(x)\n\n\ng(x)",
    "in a scan": (
        "@jax.jit\ndef g(x):\n    return jax.lax.scan(lambda c, r: (c + {f}(r), c), 0.0, x)\n\n\ng(x)"
    ),
    "under another jit": "@jax.jit\ndef g(x):\n    return jax.jit({f})(x)\n\n\ng(x)",
}
EAGER = {
    "called": "{f}(x)",
    "grad": "jax.grad({f})(x)",
    "value_and_grad": "jax.value_and_grad({f})(x)",
    "vmap": "jax.vmap({f})(x)",
    "jvp": "jax.jvp({f}, (x,), (x,))",
    "vjp": "jax.vjp({f}, x)",
    "linearize": "jax.linearize({f}, x)",
    "by an eager lambda": "(lambda x: {f}(x) + 1)(x)",
    "in a loop": "for _ in range(3):\n    {f}(x)",
    "in main": "def main():\n    {f}(x)\n\n\nmain()",
}
NEITHER = {
    "eval_shape": "jax.eval_shape({f}, x)",
    "make_jaxpr": "jax.make_jaxpr({f})(x)",
    "make_jaxpr of jit": "jax.make_jaxpr(jax.jit({f}))(x)",
    "by nothing": "",
}


async def hover_of(own: Session, path: Path, call: str, others: str) -> str:
    """The hover of the function that a program calls, beside others."""
    program = f"{HEAD}{others}x = jnp.ones((4, 3))\n{call}\n".format(f="f")
    own.open(str(path), program)
    await own.background.settle(str(path), patience=240)
    hover = await own.hover(str(path), Position(program[: program.index("def f")].count("\n"), 4))
    own.close(str(path))
    return hover.markdown if hover is not None else ""


@pytest.mark.parametrize("name", {**COMPILED, **PARTS, **INSIDE, **EAGER, **NEITHER})
async def test_kernels_belong_to_what_is_compiled(name: str, project: tuple[Session, Path]) -> None:
    own, root = project
    inside = {**PARTS, **INSIDE}
    call = {**COMPILED, **inside, **EAGER, **NEITHER}[name]
    hover = await hover_of(own, root / f"compiled_{'_'.join(name.split())}.py", call, ROOT)
    assert ("not compiled: runs op by op, 2 operations" in hover) == (name in EAGER), hover
    has_kernels = "| target |" in hover or "*compiling for " in hover
    assert has_kernels == (name not in {**inside, **EAGER} and bool(call)), hover
    assert ("not compiled by itself: it is a part of other programs" in hover) == (name in inside)


@pytest.mark.parametrize("name", ["jit", "jit of a gradient", "by a function", "grad"])
async def test_whoever_asks_gets_kernels(name: str, project: tuple[Session, Path]) -> None:
    own, root = project
    path = str(root / f"asked_{'_'.join(name.split())}.py")
    call = {**COMPILED, **PARTS, **INSIDE, **EAGER}[name]
    own.open(path, f"{HEAD}{ROOT}x = jnp.ones((4, 3))\n{call}\n".format(f="f"))
    await own.background.settle(path, patience=240)
    _, result = await compiled_function(own.engine, path, "f", "cpu")
    own.close(path)
    assert isinstance(result, LocatedFigures)


def in_main(call: str) -> str:
    return f"def main():\n    y = x * 1\n    {call}\n\n\nmain()"


def guarded(call: str) -> str:
    return f'if __name__ == "__main__":\n    {call}'


def assigned(call: str) -> str:
    return f"out = (\n    {call}\n)"


@pytest.mark.parametrize("place", [str, assigned, in_main, guarded])
@pytest.mark.parametrize("name", {**PARTS, "jit": "", "eager": "", "of JAX": ""})
async def test_a_program_without_a_function_has_its_figures_at_the_call(
    name: str, place: Callable[[str], str], project: tuple[Session, Path]
) -> None:
    own, root = project
    path = str(root / f"parts_{place.__name__}_{'_'.join(name.split())}.py")
    own.configure(
        [str(root)],
        {**QUIET, "python": sys.executable, "target": "cpu", "inlayHints": {"kernels": True}},
    )
    others = {"jit": "jax.jit({f})(x)", "eager": "{f}(x)", "of JAX": "jnp.mean(x)"}
    call = {**PARTS, **others}[name].format(f="f")
    text = f"{HEAD.format(f='f')}x = jnp.ones((4, 3))\n{place(call)}\n"
    own.open(path, text)
    await own.background.settle(path, patience=240)
    hints = {hint.range.start.line: hint.label for hint in await own.hints(path, wait=True)}
    own.close(path)
    label = hints.get(text[: text.index(call)].count("\n"), "")
    title = re.match(r"▣ (jit\(<?\w+>?\)|scan|while|cond) · \d+ kernel", label)
    assert (title is not None) == (name in PARTS), hints


async def test_an_edit_of_the_call_is_followed(project: tuple[Session, Path]) -> None:
    own, root = project
    path = str(root / "edited.py")
    program = f"{HEAD}{ROOT}{{call}}\n".format(f="f", call="{call}")
    own.open(path, "")
    for call, is_compiled in (("f", False), ("jax.jit(f)", True), ("jax.vmap(f)", False)):
        x = "jnp.ones((1, 3))" if "vmap" in call else "jnp.ones(3)"
        text = program.format(call=f"{call}({x})")
        own.change(path, text)
        await own.background.settle(path, patience=240)
        hover = await own.hover(path, Position(text[: text.index("def f")].count("\n"), 4))
        assert hover is not None
        assert ("not compiled: runs op by op" in hover.markdown) != is_compiled, call
    own.close(path)


SHARED = """\
import jax
import jax.numpy as jnp


class Layer:
    def __init__(self, n):
        self.w = jnp.ones((n, n))

    def __call__(self, w, x):
        return jnp.tanh(x @ w)


def loss(layer, w, x):
    return jnp.mean(layer(w, x) ** 2)


layer = Layer(16)


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: loss(layer, w, x))(w)


for _ in range(3):
    layer.w = step(layer.w, jnp.ones((8, 16)))
"""


async def test_parts_of_a_program_show_their_shares(project: tuple[Session, Path]) -> None:
    own, root = project
    path = str(root / "shared.py")
    own.configure(
        [str(root)],
        {**QUIET, "python": sys.executable, "target": "cpu", "inlayHints": {"kernels": True}},
    )
    own.open(path, SHARED)
    await own.background.settle(path, patience=240)
    hints = {hint.range.start.line: hint.label for hint in await own.hints(path, wait=True)}
    lines = SHARED.split("\n")
    hover = await own.hover(path, Position(lines.index("def loss(layer, w, x):"), 4))
    own.close(path)
    whole = re.fullmatch(r"▣ (\d+) kernels.*", hints[lines.index("def step(w, x):")])
    assert whole is not None, hints
    part = re.fullmatch(
        r"▣ in step: (\d) of (\d+) kernels?", hints[lines.index("def loss(layer, w, x):")]
    )
    assert part is not None, hints
    assert part[2] == whole[1]
    assert 0 < int(part[1]) < int(whole[1])
    assert lines.index("    def __init__(self, n):") not in hints
    assert hover is not None
    assert f"in `step`: {part[1]} of {part[2]} kernels" in hover.markdown
    assert "| target |" not in hover.markdown


async def test_a_file_that_compiles_nothing_shows_kernels(project: tuple[Session, Path]) -> None:
    own, root = project
    hover = await hover_of(own, root / "lesson.py", "{f}(x)", "")
    assert "| target |" in hover or "*compiling for " in hover
    assert "not compiled" not in hover


HEADS = {
    "one line": "def f(x):{mark}\n    return jnp.sum(jnp.sin(x))\n",
    "a comment": "def f(x):  # noqa: D103{mark}\n    return jnp.sum(jnp.sin(x))\n",
    "several lines": "def f({mark}\n    x,\n):\n    return jnp.sum(jnp.sin(x))\n",
    "decorated": "@(lambda g: g)\ndef f(x):{mark}\n    return jnp.sum(jnp.sin(x))\n",
    "a docstring": 'def f(x):{mark}\n    """One."""\n    return jnp.sum(jnp.sin(x))\n',
}


@pytest.mark.parametrize("others", ["", ROOT], ids=["alone", "beside a root"])
@pytest.mark.parametrize("name", HEADS)
async def test_a_function_is_treated_as_compiled(
    name: str, others: str, project: tuple[Session, Path]
) -> None:
    own, root = project
    path = str(root / f"treated_{bool(others)}_{'_'.join(name.split())}.py")
    imports = "import jax\nimport jax.numpy as jnp\n\n\n"
    text = f"{imports}{HEADS[name]}\n\n{others}f(jnp.ones(3))\n"
    eager = text.format(mark="")
    own.open(path, eager)
    await own.background.settle(path, patience=240)
    place = Position(eager[: eager.index("def f")].count("\n"), 4)
    hover = await own.hover(path, place)
    assert hover is not None
    assert ("runs op by op" in hover.markdown) == bool(others)
    [action] = [a for a in await own.actions(path, Range(place, place)) if "Treat f" in a.title]
    changed = applied(eager, action.edits)
    assert changed == text.format(mark="  # jaxsight: root")
    own.change(path, changed)
    await own.background.settle(path, patience=240)
    hover = await own.hover(path, place)
    assert hover is not None
    assert "| target |" in hover.markdown or "*compiling for " in hover.markdown
    assert "runs op by op" not in hover.markdown
    assert "Treat f" not in "".join(a.title for a in await own.actions(path, Range(place, place)))
    own.close(path)
