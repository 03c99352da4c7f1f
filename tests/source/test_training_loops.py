"""A training loop does not start, however its compiled function was made, called and repeated."""

import itertools
import textwrap

import pytest

from jaxsight.source.module import Module
from jaxsight.source.slicing.chunk_roles import Role, roles_of

HEAD = """
import functools
from functools import partial
import equinox as eqx
import jax
import jax.numpy as jnp
from flax import nnx
from jax import jit

data = [1.0, 2.0]

def loss(w, x=1.0):
    return jnp.sum(w * x)

def make_step(f):
    @jax.jit
    def step(w, x):
        return f(w, x)
    return step

def make_pair(f):
    step = jax.jit(f)
    return f, step

def compiled(f):
    return jax.jit(f)

class Holder:
    def __init__(self):
        self.update = jax.jit(loss)

    @partial(jax.jit, static_argnums=0)
    def step(self, w, x):
        return w * x
"""

MADE = {
    "jit": "update = jax.jit(loss)",
    "imported jit": "update = jit(loss)",
    "grad": "update = jax.jit(jax.grad(loss))",
    "value_and_grad": "update = jax.value_and_grad(jax.jit(loss))",
    "partial jit": "update = partial(jax.jit, static_argnums=1)(loss)",
    "jit of partial": "update = jax.jit(partial(loss, 1.0))",
    "partial of a jitted one": "update = functools.partial(jax.jit(loss), 1.0)",
    "nnx": "update = nnx.jit(loss)",
    "equinox": "update = eqx.filter_jit(loss)",
    "pmap": "update = jax.pmap(loss)",
    "vmap of a jitted one": "update = jax.vmap(jax.jit(loss))",
    "ahead of time": "update = jax.jit(loss).lower(1.0).compile()",
    "factory": "update = make_step(loss)",
    "factory of two": "_, update = make_pair(loss)",
    "one's own wrapper": "update = compiled(loss)",
    "one of two": "update = jax.jit(loss) if data else loss",
    "table": "update = {'a': jax.jit(loss)}['a']",
    "method": "update = Holder().step",
    "attribute": "update = Holder().update",
    "decorator": "@jax.jit\ndef update(w, x):\n    return w * x",
    "partial decorator": "@partial(jax.jit, donate_argnums=0)\ndef update(w, x):\n    return w * x",
    "nnx decorator": "@nnx.jit\ndef update(w, x):\n    return w * x",
    "own decorator": "@compiled\ndef update(w, x):\n    return w * x",
    "helper": "inner = jax.jit(loss)\ndef update(w, x):\n    return inner(w, x)",
    "lambda": "inner = jax.jit(loss)\nupdate = lambda w, x: inner(w, x)",
    "import": "from jax import jit as compile_it\nupdate = compile_it(loss)",
}

LOOPS = {
    "for": "for x in xs:\n    w = update(w, x)",
    "one line": "for x in xs: w = update(w, x)",
    "while": "i = 0\nwhile i < 1000:\n    w = update(w, x)\n    i += 1",
    "nested": "for i in range(3):\n    for x in xs:\n        w = update(w, x)",
    "range": "for i in range(100):\n    w = update(w, x)",
    "enumerate": "for i, x in enumerate(xs):\n    w = update(w, x)",
    "comprehension": "ws = [update(w, x) for x in xs]",
    "map": "ws = list(map(lambda x: update(w, x), xs))",
    "branch": "for x in xs:\n    if x:\n        w = update(w, x)",
    "try": "for x in xs:\n    try:\n        w = update(w, x)\n    except ValueError:\n        pass",
    "in a call": "for x in xs:\n    print(float(update(w, x)))",
    "part": "for x in xs:\n    w = update(w, x)[0].mean()",
}

PLACES = ["local", "global", "passed"]


def indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def module(made: str, loop: str, place: str) -> str:
    """A module whose last statement starts the loop."""
    match place:
        case "local":
            body = f"w = 1.0\n{made}\n{loop}\nreturn w"
            return f"{HEAD}\ndef train(xs, x):\n{indented(body)}\n\ntrain(data, 1.0)\n"
        case "global":
            body = f"w = 1.0\n{loop}\nreturn w"
            return f"{HEAD}\n{made}\ndef train(xs, x):\n{indented(body)}\n\ntrain(data, 1.0)\n"
        case "passed":
            body = f"w = 1.0\n{loop}\nreturn w"
            return (
                f"{HEAD}\n{made}\ndef train(update, xs, x):\n{indented(body)}\n"
                "def main():\n    train(update, data, x=1.0)\n\nmain()\n"
            )
    raise ValueError(place)


def last_role(text: str) -> tuple[Role, str]:
    parsed = Module.parse(text)
    statements = [chunk.statement for chunk in parsed.chunks]
    marks = [chunk.mark for chunk in parsed.chunks]
    role = roles_of(statements, marks, parsed.bindings).all[-1]
    return role.role, role.reason


CASES = [(made, loop, place) for made, loop, place in itertools.product(MADE, LOOPS, PLACES)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("made", MADE)
def test_a_call_that_starts_a_training_loop_is_skipped(made: str, place: str) -> None:
    for name, loop in LOOPS.items():
        role = last_role(module(MADE[made], loop, place))
        assert role == (Role.LEFT_OUT, "loop that calls compiled functions"), name


@pytest.mark.parametrize("loop", LOOPS)
def test_a_training_loop_at_the_top_level_is_skipped(loop: str) -> None:
    for name, made in MADE.items():
        text = f"{HEAD}\n{made}\nxs = data\nw = x = 1.0\n"
        *_, last = LOOPS[loop].split("\nwhile")
        text += LOOPS[loop] if len(LOOPS[loop].split("\nwhile")) == 1 else f"while{last}"
        assert last_role(text)[0] is Role.LEFT_OUT, name


@pytest.mark.parametrize(
    "call",
    [
        "out = [jax.jit(f)(x) for f in (loss, jnp.sin, jnp.cos) * 9]",
        "for x in data * 9: out = jax.jit(loss)(x)",
        "Trainer().fit(data)",
        "sizes = [jax.jit(loss).lower(x).compile() for x in data]",
        "Trainer(jax.jit(loss)).run(data)",
        "fields = Fields(step=jax.jit(loss)).run(data)",
        "result = partial(run, data)()",
        "state, losses = run(data)",
        "with jax.named_scope('a'):\n    run(data)",
        "if data:\n    run(data)",
        "try:\n    run(data)\nfinally:\n    pass",
        "print(run(data))",
        "[run(data) for _ in (1, 2)]",
        "(lambda: run(data))()",
        "timeit.timeit(lambda: jax.jit(loss)(1.0), number=1000)",
    ],
)
def test_other_ways_to_start_one(call: str) -> None:
    text = f"""{HEAD}
import timeit
from dataclasses import dataclass
from typing import Callable


def run(xs):
    def one(w, x):
        return update(w, x)
    update = jax.jit(loss)
    w = 0.0
    for x in xs:
        w = one(w, x)
    return w, []

class Base:
    def run(self, xs):
        for x in xs:
            self.step(x)

class Trainer(Base):
    def __init__(self, step=None):
        self.step = step
        self.update = nnx.jit(loss)

    def fit(self, xs):
        for x in xs:
            self.one(x)

    def one(self, x):
        return self.update(x)

@dataclass
class Fields(Base):
    step: Callable

{call}
"""
    assert last_role(text)[0] is Role.LEFT_OUT


@pytest.mark.parametrize(
    "statement",
    [
        "w = jax.jit(loss)(1.0)",
        "def g():\n    for x in data:\n        update(1.0, x)",
        "g = make_step(loss)",
        "total = sum(x for x in data)",
        "layers = [make_step(loss) for _ in range(100)]",
        "for name in ('a', 'b'):\n    jax.jit(loss)(1.0)",
        "if __name__ == '__main__':\n    for x in data:\n        update(1.0, x)",
        "model = Holder()",
        "w = Holder().step(1.0, 2.0)",
        "y = jax.lax.fori_loop(0, 100, lambda i, w: jax.jit(loss)(w), 1.0)",
    ],
)
def test_what_starts_none_is_not_skipped(statement: str) -> None:
    assert last_role(f"{HEAD}\nupdate = jax.jit(loss)\n{statement}\n")[0] is not Role.LEFT_OUT


def test_an_edit_of_a_function_on_the_way_is_seen() -> None:
    text = module(MADE["jit"], LOOPS["for"], "local")
    assert last_role(text)[0] is Role.LEFT_OUT
    assert last_role(text.replace("update = jax.jit(loss)", "update = loss"))[0] is Role.ACTS
    assert last_role(text)[0] is Role.LEFT_OUT
