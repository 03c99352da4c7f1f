"""Five hundred random edits: a session that saw them all answers as one that only ever saw the last
text.

Everything that is kept between edits (chunks, executions, answers, observations of cached jaxprs)
could go wrong here; nothing else tells such faults from the outside. A failure names its seed and
the edits since the last text that was right.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.session import Session
from jaxsight.source.module import Module
from tests.features.everything_shown import differences, shown
from tests.quiet import QUIET
from tests.searches import VARIABLE

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

EDITS = 125
"""Edits in each of the four runs."""
SEEDS = [0] if os.environ.get(VARIABLE) == "sentinels" else [*range(4)]
"""The gate holds one of them, as each compares 41 texts."""
COMPARED_EVERY = 3
REST = 120.0
"""Seconds in which a session comes to rest on any machine."""
ANEW_EVERY = 100
"""After so many edits even the other session starts its processes anew."""

SOURCE = '''\
"""A file as it grows."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

WIDTH = 4
SCALES = [1.0, 2.0]
SCALES.append(3.0)


class State(NamedTuple):
    total: jax.Array
    count: int


def normalize(x, eps=1e-6):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    return centred / (jnp.std(x) + eps)


@jax.jit
def project(x, w):
    y = x @ w
    return normalize(y) * SCALES[0]


def layer(x, w):
    """One layer.

    Example inputs:
        x: f32[8, WIDTH]
        w: f32[WIDTH, 16]
        where WIDTH=4
    """
    hidden = project(x, w)
    gate = jax.nn.sigmoid(hidden)
    out = hidden * gate
    return out[:, None]


def summed(xs):
    """
    Example inputs:
        xs: f32[10, 3]
    Example inputs (long):
        xs: f32[20, 3]
    """

    def step(state, x):
        total = state.total + normalize(x)
        return State(total, state.count + 1), total.sum()

    state, sums = jax.lax.scan(step, State(jnp.zeros(3), 0), xs)
    return state.total, sums


@partial(jax.jit, static_argnames="n")
def repeated(x, n):
    """
    Example inputs:
        x: f32[5]
        n: 3
    """
    for _ in range(n):
        x = jnp.concatenate([x, x])
    rows = x.reshape(WIDTH, -1)
    return rows


class Model:
    """
    Example inputs:
        self = Model(WIDTH)
    """

    def __init__(self, width):
        self.weight = jnp.ones((width, 2))

    def __call__(self, x):
        """
        Example inputs:
            x: f32[7, 4]
        """
        product = x @ self.weight
        return jax.vmap(normalize)(product)


def gradient(x):
    """
    Example inputs:
        x: f32[6]
    """
    values, slopes = jax.value_and_grad(lambda x: normalize(x).sum())(x)
    return values, slopes * WIDTH
'''

STATEMENTS = [
    "    x = x * 2",
    "    extra = jnp.stack([x, x])",
    "    y = y[..., None] if 'y' in locals() else x",
    "    assert x.ndim",
    "    # a remark",
    "    if x.sum() > 0: x = -x",
    "    table = {'a': x, 'b': (x, 1)}",
]
TOP_LEVEL = [
    "WIDTH = 2",
    "SCALES.append(0.5)",
    "jax.config.update('jax_enable_x64', True)",
    "jax.config.update('jax_enable_x64', False)",
    "def normalize(x, eps=1e-3): return x / eps",
    "# a remark",
    "",
    "BAD = 1 / 0",
    "print('hello')",
]
BREAKING = ["(", ")", "[", '"""', ":", "def", "    ", "'"]


@dataclass
class Typist:
    """Somebody who edits at random, undoes, and now and then goes back to a text that was right."""

    choose: random.Random
    text: str
    before: list[str]

    def edit(self) -> str:
        """One edit; its name."""
        edits: list[tuple[int, Callable[[list[str]], None]]] = [
            (3, self.insert_statement),
            (2, self.insert_top_level),
            (2, self.delete_line),
            (3, self.change_number),
            (2, self.change_shape),
            (2, self.rename),
            (2, self.break_syntax),
            (1, self.duplicate_line),
            (1, self.swap_lines),
        ]
        going_back = 4 if Module.parse(self.text).syntax_problem is None else 20
        weights = [*(weight for weight, _ in edits), going_back]
        (number,) = self.choose.choices(range(len(weights)), weights)
        if number == len(edits):
            self.text = self.before.pop() if self.before else SOURCE
            return "go back"
        self.before = [*self.before[-20:], self.text]
        lines = self.text.split("\n")
        edits[number][1](lines)
        self.text = "\n".join(lines)
        return edits[number][1].__name__

    def line(self, lines: list[str]) -> int:
        return self.choose.randrange(len(lines))

    def insert_statement(self, lines: list[str]) -> None:
        bodies = [n for n, line in enumerate(lines) if re.match(r"    \w+.* = ", line)]
        if bodies:
            lines.insert(self.choose.choice(bodies), self.choose.choice(STATEMENTS))

    def insert_top_level(self, lines: list[str]) -> None:
        starts = [n for n, line in enumerate(lines) if re.match(r"(def|@|class|[A-Z])", line)]
        if starts:
            lines.insert(self.choose.choice(starts), self.choose.choice(TOP_LEVEL))

    def delete_line(self, lines: list[str]) -> None:
        del lines[self.line(lines)]

    def change_number(self, lines: list[str]) -> None:
        self._substitute(lines, r"\b\d+\b", lambda _: str(self.choose.randrange(1, 9)))

    def change_shape(self, lines: list[str]) -> None:
        self._substitute(lines, r"f32(?=\[)", lambda _: self.choose.choice(["f32", "bf16", "i32"]))

    def rename(self, lines: list[str]) -> None:
        self._substitute(lines, r"\b[a-z]+\b", lambda word: word + "_")

    def break_syntax(self, lines: list[str]) -> None:
        number = self.line(lines)
        at = self.choose.randrange(len(lines[number]) + 1)
        lines[number] = lines[number][:at] + self.choose.choice(BREAKING) + lines[number][at:]

    def duplicate_line(self, lines: list[str]) -> None:
        number = self.line(lines)
        lines.insert(number, lines[number])

    def swap_lines(self, lines: list[str]) -> None:
        number = self.choose.randrange(1, len(lines))
        lines[number - 1 : number + 1] = lines[number], lines[number - 1]

    def _substitute(self, lines: list[str], pattern: str, new: Callable[[str], str]) -> None:
        places = [(n, m) for n, line in enumerate(lines) for m in re.finditer(pattern, line)]
        if places:
            number, match = self.choose.choice(places)
            line = lines[number]
            lines[number] = line[: match.start()] + new(match.group()) + line[match.end() :]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sessions() -> AsyncIterator[Callable[[Path], Session]]:
    made: list[Session] = []

    def session(root: Path) -> Session:
        new = Session()
        new.configure([str(root)], {**QUIET, "python": sys.executable})
        made.append(new)
        return new

    yield session
    for each in made:
        await each.aclose()


@pytest.mark.search
@pytest.mark.parametrize("seed", SEEDS)
async def test_what_is_shown_does_not_depend_on_what_was_edited_before(
    seed: int, sessions: Callable[[Path], Session], tmp_path: Path
) -> None:
    root = tmp_path
    lasting, other = sessions(root), sessions(root)
    path = str(root / "lasting.py")
    typist = Typist(random.Random(seed), SOURCE, [])
    lasting.open(path, SOURCE)
    history: list[str] = []
    for number in range(1, EDITS + 1):
        history.append(typist.edit())
        lasting.change(path, typist.text)
        if number % COMPARED_EVERY:
            continue
        if number % ANEW_EVERY < COMPARED_EVERY:
            await other.restart()
        fresh = str(root / f"fresh_{number}.py")
        other.open(fresh, typist.text)
        expected = await shown(other, fresh, typist.text)
        actual = await shown(lasting, path, typist.text)
        if differences(actual, expected):
            # Programs may have run, and answers been replaced, while a busy machine was asked:
            # neither session is at rest.
            for session, file in ((other, fresh), (lasting, path)):
                await session.background.settle(file, patience=REST)
            expected = await shown(other, fresh, typist.text)
            actual = await shown(lasting, path, typist.text)
        other.close(fresh)
        where = f"seed {seed}, edit {number}, after {history}:\n{typist.text}"
        assert differences(actual, expected) == {}, where
        history.clear()
