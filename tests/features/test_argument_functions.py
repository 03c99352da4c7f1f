"""Functions that are arguments or nested, with arrays that they capture, and under decorators."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.session import Session
from jaxsight.source.text import Position

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

PROGRAM = """\
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp


class State(NamedTuple):
    position: jax.Array
    energy: float


def kernel_of(scale, matrix):
    def step(key, state):
        return state + scale * matrix @ jax.random.normal(key, state.shape)

    return step


def sampled(key, kernel, state):
    return jax.lax.fori_loop(0, 3, lambda i, s: kernel(key, s), state)


def jitted(key, kernel, state):
    return kernel(key, state)


def applied(f, x):
    return jnp.sin(f(x))


def scaled(w, x):
    return w * x


@jax.jit
@jax.vmap
def rows(x):
    return jnp.sin(x)[0]


def factory():
    @jax.vmap
    def first(x):
        return jnp.cos(x)[0]

    return first


def moved(state):
    return State(state.position + 1, jnp.cos(state.energy))


def pair(key):
    w = jax.random.normal(key, (3, 2))

    def there(x):
        return x @ w

    def back(x):
        return x @ w.T

    return there, back


def main():
    key = jax.random.key(0)
    step = kernel_of(jnp.ones(()), jnp.eye(3))
    sampled(key, step, jnp.zeros(3))
    jitted(key, jax.jit(step), jnp.zeros(3))
    applied(functools.partial(scaled, jnp.ones(2)), jnp.ones(2))
    factory()(jnp.ones((4, 3)))


there, back = jax.jit(lambda key: tuple(f(jnp.ones(n)) for f, n in zip(pair(key), (3, 2))))(
    jax.random.key(0)
)
rows(jnp.ones((5, 3)))
moved_once = jax.lax.while_loop(lambda s: s.energy > 2, moved, State(jnp.ones(3), 0.0))

if __name__ == "__main__":
    main()
"""

SHOWN = {
    "def sampled": "kernel: step(matrix=f32[3,3], scale=f32[])",
    "def jitted": "kernel: step(matrix=f32[3,3], scale=f32[])",
    "def applied": "applied(f: scaled(first=(f32[2],)), x: f32[2]) -> f32[2]",
    "def rows": "rows(x: f32[3]) -> f32[]",
    "    def first": "first(x: f32[3]) -> f32[]",
    "def moved": "state: State(position=f32[3], energy=f32[])",
    "    def there": "captured: {'w': f32[3,2]}, x: f32[3]) -> f32[2]",
    "    def back": "captured: {'w': f32[3,2]}, x: f32[2]) -> f32[3]",
}


async def test_functions_are_shown_with_what_they_capture(project: tuple[Session, Path]) -> None:
    own, root = project
    path = str(root / "functions.py")
    own.open(path, PROGRAM)
    await own.background.settle(path, patience=240)
    lines, shown = PROGRAM.split("\n"), {}
    for place in SHOWN:
        row = next(number for number, line in enumerate(lines) if line.startswith(place))
        hover = await own.hover(path, Position(row, place.index("def") + 4))
        shown[place] = " ".join(hover.markdown.split()) if hover is not None else ""
    own.close(path)
    wrong = {place: text for place, text in shown.items() if SHOWN[place] not in text}
    assert wrong == {}


MANY_LINES = """\
import jax.numpy as jnp


def f(x, y):
    return jnp.sin(x) + y


if __name__ == "__main__":
    a = f(
        jnp.ones(3),
        2.0,
    )
"""


async def test_a_call_of_many_lines_is_named_by_its_first(project: tuple[Session, Path]) -> None:
    own, root = project
    path = str(root / "many.py")
    own.open(path, MANY_LINES)
    await own.background.settle(path, patience=240)
    hover = await own.hover(path, Position(3, 4))
    own.close(path)
    assert hover is not None
    assert "as in `a = f(`" in hover.markdown
