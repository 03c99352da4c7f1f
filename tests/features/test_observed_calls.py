"""Functions are shown as the statements of their file call them, seen from inside of their bodies."""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HEAD = "import functools\nimport jax\nimport jax.numpy as jnp\nfrom not_there import show\n\n\n"
SINE = "def {f}(x):\n    return jnp.sum(jnp.sin(x))\n"
SQUARE = "def {f}(x):\n    return jnp.sin(x) * 2\n"
SCALED = "def {f}(w, x):\n    return w * jnp.sum(jnp.sin(x))\n"
OPERATORS = "def {f}(w, x):\n    return {g}(w, {g}(w, x))\n\n\ndef {g}(w, x):\n"
OPERATORS += "    return jnp.tanh(x @ w)\n"
WITHOUT = "def {f}():\n    return jnp.outer(jnp.ones(4), jnp.ones(5))\n"
DEFAULTS = "def {f}(n=4, *, m=5):\n    return jnp.outer(jnp.ones(n), jnp.ones(m))\n"

CALLS = {
    # A part of each argument.
    "vmap": (SINE, "jax.vmap({f})(jnp.ones((4, 3)))", "(x: f32[3]) -> f32[]"),
    "of axes": (
        SCALED,
        "jax.vmap({f}, in_axes=(None, 1))(jnp.ones(()), jnp.ones((3, 4)))",
        "(w: f32[], x: f32[3]) -> f32[]",
    ),
    "of a jit": (SINE, "jax.vmap(jax.jit({f}))(jnp.ones((4, 3)))", "(x: f32[3]) -> f32[]"),
    "in a jit": (SINE, "jax.jit(jax.vmap({f}))(jnp.ones((4, 3)))", "(x: f32[3]) -> f32[]"),
    "of a gradient": (
        SINE,
        "jax.vmap(jax.grad({f}))(jnp.ones((4, 3)))",
        "(x: f32[3]) -> f32[]",
    ),
    "twice": (SINE, "jax.vmap(jax.vmap({f}))(jnp.ones((4, 3, 2)))", "(x: f32[2]) -> f32[]"),
    "by a name": (SINE, "g_{f} = jax.vmap({f})\ng_{f}(jnp.ones((4, 3)))", "(x: f32[3]) -> f32[]"),
    "of a partial": (
        SCALED,
        "jax.vmap(functools.partial({f}, 2.0))(jnp.ones((4, 3)))",
        "(w: 2.0, x: f32[3]) -> f32[]",
    ),
    "map": (SINE, "jax.lax.map({f}, jnp.ones((4, 3)))", "(x: f32[3]) -> f32[]"),
    "pmap": (SINE, "jax.pmap({f})(jnp.ones((1, 3)))", "(x: f32[3]) -> f32[]"),
    "scan": (
        SCALED,
        "jax.lax.scan(lambda w, x: ({f}(w, x), None), jnp.ones(()), jnp.ones((4, 3)))",
        "(w: f32[], x: f32[3]) -> f32[]",
    ),
    # The whole of each argument, where its text is no call of the function.
    "cond": (SINE, "jax.lax.cond(True, {f}, {f}, jnp.ones(3))", "(x: f32[3]) -> f32[]"),
    "loop": (
        SQUARE,
        "jax.lax.fori_loop(0, 3, lambda _, x: {f}(x), jnp.ones(3))",
        "(x: f32[3]) -> f32[3]",
    ),
    "while": (
        SQUARE,
        "jax.lax.while_loop(lambda x: x[0] > 0, {f}, -jnp.ones(3))",
        "(x: f32[3]) -> f32[3]",
    ),
    "hessian": (SINE, "jax.hessian({f})(jnp.ones(3))", "(x: f32[3]) -> f32[]"),
    "jacobian": (SQUARE, "jax.jacfwd({f})(jnp.ones(3))", "(x: f32[3]) -> f32[3]"),
    "products": (
        SQUARE,
        "jax.jvp({f}, (jnp.ones(3),), (jnp.ones(3),))",
        "(x: f32[3]) -> f32[3]",
    ),
    "lambda": (SINE, "(lambda x: {f}(x))(jnp.ones(3))", "(x: f32[3]) -> f32[]"),
    "printed": (SQUARE, "print({f}(*[jnp.ones(3)]).shape)", "(x: f32[3]) -> f32[3]"),
    # Something missing is called with it.
    "missing": (SINE, "show({f}, *[jnp.ones(3)], width=3)", "(x: f32[3]) -> f32[]"),
    # It names nothing of JAX.
    "operators": (
        OPERATORS,
        "print({f}(jnp.ones((8, 8)), jnp.ones((2, 8))).shape)",
        "(w: f32[8,8], x: f32[2,8]) -> f32[2,8]",
    ),
    "operators in a jit": (
        OPERATORS,
        "jax.jit({f})(jnp.ones((8, 8)), jnp.ones((2, 8)))",
        "(w: f32[8,8], x: f32[2,8]) -> f32[2,8]",
    ),
    # It has no arguments.
    "without parameters": (WITHOUT, "{f}()", "() -> f32[4,5]"),
    "printed without parameters": (WITHOUT, "print({f}().shape)", "() -> f32[4,5]"),
    "jit without parameters": (WITHOUT, "jax.jit({f})()", "() -> f32[4,5]"),
    "defaults": (DEFAULTS, "{f}()", "(n: 4, m: 5) -> f32[4,5]"),
    "some defaults": (DEFAULTS, "{f}(m=6)", "(n: 4, m: 6) -> f32[4,6]"),
}


def program() -> tuple[str, dict[str, int]]:
    """Return a file with a function for each call, and the lines of the functions."""
    text, lines = HEAD, {}
    for number, (name, (function, _, _)) in enumerate(CALLS.items()):
        lines[name] = text.count("\n")
        text += function.format(f=f"f{number}", g=f"g{number}") + "\n\n"
    for number, (_, call, _) in enumerate(CALLS.values()):
        text += call.format(f=f"f{number}") + "\n"
    return text, lines


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Session, str]]:
    root = tmp_path_factory.mktemp("project")
    session = session_without_spare()
    settings = {**QUIET, "python": sys.executable, "timeouts": {"statement": 60}}
    session.configure([str(root)], settings)
    path = root / "program.py"
    path.write_text(program()[0])
    session.open(str(path), path.read_text())
    await session.background.settle(str(path), patience=240)
    yield session, str(path)
    await session.aclose()


@pytest.mark.parametrize("name", CALLS)
async def test_a_function_is_shown_as_it_is_called(name: str, session: tuple[Session, str]) -> None:
    own, path = session
    hover = await own.hover(path, Position(program()[1][name], 4))
    assert hover is not None
    number = list(CALLS).index(name)
    assert f"f{number}{CALLS[name][2]}" in hover.markdown


SHY = """\
import jax.numpy as jnp


class Shy:
    def __init__(self):
        self.scale = 2.0

    def __repr__(self):
        scaled(self, 1.0)
        raise ValueError("nobody prints this")


def scaled(shy, x):
    return jnp.sin(x) * shy.scale


y = scaled(Shy(), jnp.ones(3))
z = jnp.cos(y)
"""


async def test_objects_that_cannot_be_described_disturb_nothing(
    session: tuple[Session, str],
) -> None:
    own, path = session
    shy = str(Path(path).with_name("shy.py"))
    own.open(shy, SHY)
    await own.background.settle(shy, patience=240)
    answer = await own.hover(shy, Position(12, 4))
    findings = (await own.report(shy)).reported
    own.close(shy)
    assert answer is not None
    assert "x: f32[3]" in answer.markdown
    assert [finding.message for finding in findings if "nobody" in finding.message] == []


ROOTED = """\
import jax
import jax.numpy as jnp


def f(x):
    return jnp.sin(x) + 1


@jax.jit
def root(x):
    return f(x)


{calls}
"""
ORDERS = ("f(jnp.ones(100))", "root(jnp.ones(3))", "f(jnp.ones(300))")


@pytest.mark.parametrize("order", [*itertools.permutations(ORDERS)])
@pytest.mark.parametrize("place", ["", "def main():\n    {0}\n    {1}\n    {2}\n\n\nmain()"])
async def test_what_is_compiled_comes_before_larger_calls(
    order: tuple[str, ...], place: str, project: tuple[Session, Path]
) -> None:
    own, root = project
    path = str(root / "rooted.py")
    text = ROOTED.format(calls=place.format(*order) if place else "\n".join(order))
    own.open(path, text)
    await own.background.settle(path, patience=240)
    hover = await own.hover(path, Position(4, 4))
    own.close(path)
    assert hover is not None
    assert "f(x: f32[3])" in hover.markdown
