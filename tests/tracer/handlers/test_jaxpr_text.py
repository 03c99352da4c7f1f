"""Jaxprs and values as texts."""

from __future__ import annotations

import collections
import dataclasses
import types
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight.tracer.observation import display
from jaxsight.tracer.programs import jaxpr_text as shown
from jaxsight.wire.chunks import CHUNK_FILE
from jaxsight.wire.messages.replies import FOLDED_LINES
from jaxsight.wire.messages.requests import Show
from jaxsight_source.compat.inner import equation_count
from jaxsight_source.compat.staging import open_jaxpr
from tests.tracer.handlers.lab import lab

HEAD = "import jax, jax.numpy as jnp\n"


class Point(NamedTuple):
    x: Any
    y: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: Any
    name: str = dataclasses.field(default="dense", metadata={"static": True})


@jax.tree_util.register_pytree_with_keys_class
class Registered:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def tree_flatten_with_keys(self) -> Any:
        book = jax.tree_util.GetAttrKey("_pytree__state")  # as Flax's NNX has one
        return [(book, None), (jax.tree_util.GetAttrKey("inner"), self.inner)], None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Registered:
        return cls(children[1])


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError


A = jax.ShapeDtypeStruct((3, 4), jnp.float32)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (A, "f32[3,4]"),
        (np.zeros(2, np.int8), "i8[2](numpy)"),
        (np.float64(1), "f64[](numpy)"),
        ((A,), "(f32[3,4],)"),
        ([], "[]"),
        ({"a": A, 3: None}, "{'a': f32[3,4], 3: None}"),
        (Point(A, 2), "Point(x=f32[3,4], y=2)"),
        (Layer(A), "Layer(w=f32[3,4], name='dense')"),
        (Registered((A, True)), "Registered(inner=(f32[3,4], True))"),
        (collections.OrderedDict(a=A), "OrderedDict({'a': f32[3,4]})"),
        ({"f": jnp.sin, "t": int}, "{'f': sin, 't': int}"),
        (Broken(), "<Broken>"),
        ({"k": "x" * 100}, "{'k': '" + "x" * 58 + "…}"),
        (np.array(["a"]), "<U1[1](numpy)"),
        (jax.typeof(np.float32(1)), "f32[]"),
    ],
)
def test_displays(value: object, text: str) -> None:
    assert display.text(value) == text


def test_long_trees_are_elided_without_being_visited() -> None:
    assert display.text([A] * 100, 3) == "[f32[3,4], f32[3,4], f32[3,4], …]"
    endless: list[Any] = []
    endless.append(endless)
    assert display.text(endless).startswith("[[[")


def test_the_whole_jaxpr_links_every_line_to_its_equation_and_its_source() -> None:
    file = lab(
        HEAD
        + "def f(x):\n"
        + "    y = jnp.sin(x)\n"
        + "    c, ys = jax.lax.scan(lambda c, v: (c + v, c * 2), 0.0, y)\n"
        + "    return jax.lax.cond(c > 0, lambda v: v - 1, lambda v: v / 3, ys)\n"
    )
    traced = file.trace("f", x="f32[5]")
    told = file.ask(Show(7, traced.id))
    assert told.id == 7
    lines = told.text.split("\n")
    found: dict[str, set[str]] = {}
    for link in told.links:
        assert link.span is not None, lines[link.line]
        found.setdefault(link.path, set()).add(file.at(link.span))
    assert found["0"] == {"jnp.sin(x)"}
    assert found["1"] == {"jax.lax.scan(lambda c, v: (c + v, c * 2), 0.0, y)"}
    assert found["1/body/0"] == {"c + v"}
    assert found["1/body/2"] == {"c * 2"}
    assert {"v - 1"} in found.values()
    assert {"v / 3"} in found.values()
    assert any(path.endswith("/branches1/0") for path in found)
    first = next(link.line for link in told.links if link.path == "1/body/1")
    assert "add" in lines[first]


def test_small_jaxprs_print_as_jax_does() -> None:
    def f(x: Any) -> Any:
        c, ys = jax.lax.scan(lambda c, v: (c + v, c * 2), jnp.float32(0), jnp.sin(x))
        return c, ys, jax.jit(lambda v: jnp.where(v > 0, v, 0.0))(ys)

    jaxpr = jax.make_jaxpr(f)(jax.ShapeDtypeStruct((5,), jnp.float32))
    text, is_folded = shown.folded(jaxpr, equation_count(jaxpr))
    kept = [
        line
        for line in str(jaxpr).split("\n")
        if "_split_transpose" not in line and "linear=" not in line
    ]
    assert not is_folded
    assert variables(text) == variables("\n".join(kept))


def variables(text: str) -> list[str]:
    """The left-hand sides with their types: the parts that all versions of JAX print alike."""
    return [line.partition(" = ")[0].strip() for line in text.split("\n") if " = " in line]


def test_long_jaxprs_are_folded_to_a_number_of_lines() -> None:
    def f(x: Any) -> Any:
        for _ in range(100):
            x = jax.lax.fori_loop(0, 3, lambda _, v: jnp.cos(v) + 1, x)
        return x

    jaxpr = jax.make_jaxpr(f)(jax.ShapeDtypeStruct((5,), jnp.float32))
    text, is_folded = shown.folded(jaxpr, equation_count(jaxpr))
    assert is_folded
    assert len(text.split("\n")) <= FOLDED_LINES
    assert "jaxpr={ lambda … 3 equations }" in text
    assert "more equations" in text


def test_wide_jaxprs_elide_their_variables() -> None:
    jaxpr = jax.make_jaxpr(lambda *xs: [x + i for i, x in enumerate(xs)])(*[A] * 200)
    text, _ = shown.folded(jaxpr, equation_count(jaxpr))
    assert len(text.split("\n")) <= FOLDED_LINES
    assert "… 194 more" in text


class Counted(Sequence[Any]):
    """Equations that count how many of them are looked at."""

    def __init__(self, equations: Sequence[Any]) -> None:
        self.equations = equations
        self.looked_at = 0

    def __len__(self) -> int:
        return len(self.equations)

    def __getitem__(self, index: Any) -> Any:
        self.looked_at += 1
        return self.equations[index]


def test_folding_looks_at_no_more_equations_than_it_shows() -> None:
    def f(x: Any) -> Any:
        for _ in range(1000):
            x = x + 1
        return x

    opened = open_jaxpr(jax.make_jaxpr(f)(jax.ShapeDtypeStruct((), jnp.float32)))
    equations = Counted(opened.eqns)
    parts = {name: getattr(opened, name) for name in ("constvars", "invars", "outvars")}
    shown.folded(types.SimpleNamespace(eqns=equations, **parts), 1000)
    assert equations.looked_at < 2 * FOLDED_LINES


def test_a_shared_body_is_printed_once_and_then_named() -> None:
    file = lab(
        HEAD
        + "@jax.jit\ndef g(v):\n    for _ in range(5): v = jnp.sin(v)\n    return v\n"
        + "def f(x):\n    return g(g(x))\n"
    )
    traced = file.trace("f", x="f32[5]")
    text = file.ask(Show(1, traced.id)).text
    assert text.count("sin") == 5
    assert "{ lambda … as in 0/body }" in text
    assert traced.equations == 12


def test_texts_name_chunks_as_they_were_compiled() -> None:
    file = lab(HEAD + "def f(x):\n    return x if x > 0 else -x\n")
    message = file.fails("f", x="f32[]").failure.message
    found = CHUNK_FILE.search(message)
    assert found is not None
    assert found["chunk"] == file.chunks[0].id
    assert found["path"].endswith("/project/file.py")
