"""Random programs through the sourcerizer: control flow, transformations, types, custom rules.

`python -m tests.jaxsight_source.randomly --count 200` writes that many and prints how many came out
exactly, by style and family, and every one that did not. A number stands for one program for ever.
"""

from __future__ import annotations

import argparse
import collections
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.api import write
from jaxsight_source.errors import NotTheSame, Unsourceable
from jaxsight_source.options import SourceOptions, Style

Function = Callable[..., Any]
Draw = np.random.Generator


@dataclass(frozen=True, slots=True)
class Program:
    """A function of two arrays of one shape, the way that its results are made, and the arrays."""

    family: str
    function: Function
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`exact`, `not run` for exact text that was not run, `refused` with a reason, `different`
    where a text was made and refused because it is another program, or another error's name."""

    kind: str
    why: str = ""


_UNARY: tuple[Function, ...] = (
    jnp.sin, jnp.tanh, jax.nn.relu, jax.nn.softmax, jnp.square, jnp.abs, lambda x: x[::-1],
    lambda x: jnp.cumsum(x), lambda x: x.astype(jnp.bfloat16).astype(jnp.float32),
    lambda x: x * 2, lambda x: x + jnp.float32(0.5), lambda x: jnp.where(x > 0, x, 0.1),
    lambda x: x.at[0].set(1), lambda x: jnp.roll(x, 1), jnp.sort,
)  # fmt: skip
_BINARY: tuple[Function, ...] = (
    jnp.add, jnp.multiply, jnp.maximum, lambda x, y: x - y.mean(), lambda x, y: x * y[0],
    lambda x, y: jnp.where(x > y, x, y), lambda x, y: jnp.dot(x, y) + x,
)  # fmt: skip


def program(number: int) -> Program:
    """The program of that number."""
    draw = np.random.default_rng(number)
    family = str(draw.choice(sorted(_FAMILIES)))
    function = _FAMILIES[family](draw)
    args = tuple(jnp.asarray(draw.normal(size=4), jnp.float32) for _ in range(2))
    return Program(family, function, args)


def _one(draw: Draw) -> Function:
    steps = [_UNARY[draw.integers(len(_UNARY))] for _ in range(draw.integers(1, 4))]

    def of(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    return of


def _two(draw: Draw) -> Function:
    before, after = _one(draw), _one(draw)
    join = _BINARY[draw.integers(len(_BINARY))]
    return lambda x, y: after(join(before(x), y))


def _number(draw: Draw) -> Any:
    return [2, 2.0, True, jnp.float32(1.5), jnp.asarray(3.0), np.float32(0.5)][draw.integers(6)]


def _loop(draw: Draw) -> Function:
    step, held, kind = _two(draw), _number(draw), draw.integers(4)

    def of(x: Any, y: Any) -> Any:
        if kind == 0:
            return lax.fori_loop(0, 3, lambda i, c: (c[0], step(c[1], y) * c[0] + i), (held, x))
        if kind == 1:
            return lax.scan(lambda c, z: ((step(c[0], y) + z, c[1]), c[1]), (x, held), y)
        if kind == 2:
            return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(c[1], y)), (0, x))
        return lax.map(lambda z: step(x, y) * z * held, y)

    return of


def _branch(draw: Draw) -> Function:
    one, other, held = _two(draw), _loop(draw), _number(draw)
    return lambda x, y: (
        lax.cond(x[0] > 0, lambda z: one(z, y), lambda z: z * held * y, x * 1.0),
        other(x, y),
    )


def _with_rule(draw: Draw) -> Function:
    inner, kind = _two(draw), draw.integers(3)
    captures, drops, loops = (bool(draw.integers(2)) for _ in range(3))

    def of(x: Any, y: Any) -> Any:
        held = jnp.sin(y)

        def body(z: Any) -> Any:
            if drops:
                jnp.cos(held)
            return inner(z, held) if captures else jnp.tanh(z)

        def called(z: Any) -> Any:
            if kind == 0:
                f = jax.custom_jvp(body)
                f.defjvp(lambda p, t: (f(*p), t[0] * (held if captures else 2.0)))
                return f(z)
            g = jax.custom_vjp(body)
            residual = held if captures else None
            g.defvjp(lambda z: (g(z), (z, residual)), lambda r, ct: (ct * r[0],))
            return jax.jit(g)(z) if kind == 1 else g(z)

        return lax.fori_loop(0, 2, lambda _, c: called(c), x) if loops else called(x)

    return of


def _transformed(draw: Draw) -> Function:
    inner, kind = _two(draw), draw.integers(5)

    def of(x: Any, y: Any) -> Any:
        if kind == 0:
            return jax.value_and_grad(lambda x: inner(x, y).sum())(x)
        if kind == 1:
            return jax.jvp(lambda x: inner(x, y), (x,), (y,))
        if kind == 2:
            return jax.vmap(lambda z: inner(x * z, y))(y)
        if kind == 3:
            return jax.grad(lambda x: jax.checkpoint(inner)(x, y).sum())(x)
        return jax.jit(lambda x, y: {"a": inner(x, y), "b": [x.sum(), 2.0]})(x, y)

    return of


def _results(draw: Draw) -> Function:
    one, numbers = _two(draw), [_number(draw) for _ in range(3)]
    return lambda x, y: {"x": one(x, y), "numbers": numbers, "same": (x, None, jnp.array(1))}


_FAMILIES: dict[str, Callable[[Draw], Function]] = {
    "branches": _branch,
    "loops": _loop,
    "results": _results,
    "rules": _with_rule,
    "transformations": _transformed,
}


def outcome(made: Program, style: Style) -> Outcome:
    """Write it, which proves the text, and run it."""
    try:
        written = write(made.function, made.args, {}, SourceOptions(style, "generated"))
    except NotTheSame as error:
        return Outcome("different", error.why)
    except Unsourceable as error:
        return Outcome("refused", error.why)
    except Exception as error:  # noqa: BLE001 - what is counted
        return Outcome(type(error).__name__, str(error))
    return Outcome("exact" if written.ran.ways else "not run", written.ran.skipped)


def main() -> int:
    parser = argparse.ArgumentParser(description="Random programs through the sourcerizer")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
    for number in range(chosen.first, chosen.first + chosen.count):
        made = program(number)
        styles: tuple[Style, ...] = ("lax", "pretty")
        for style in styles:
            came = outcome(made, style)
            counts[style, made.family, came.kind] += 1
            if came.kind != "exact":
                print(f"{number} {style} {made.family}: {came.kind}: {came.why[:300]}", flush=True)
    for (style, family, kind), count in sorted(counts.items()):
        print(f"{style:8}{family:18}{kind:12}{count:5}")
    known = ("exact", "not run", "refused", "different")
    return int(any(kind not in known for _, _, kind in counts))


if __name__ == "__main__":
    sys.exit(main())
