"""What intervals claim is true of what JAX computes, for random programs of integers, and of floats."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight.rules.program.bounds import ValueBounds
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.intervals.inference import Intervals
from jaxsight.rules.program.intervals.interval import Interval
from jaxsight.tracer.handlers.outline import ProgramOutliner
from tests.searches import part

ROWS, COLUMNS = 4, 5


def flow_of(function: Callable[..., Any], *arguments: Any) -> Flow:
    return Flow(ProgramOutliner().program(jax.jit(function).trace(*arguments)))


def holds(known: Interval | None, computed: Any) -> bool:
    """Whether a range is true of an array: of all elements, in all iterations."""
    array = np.asarray(computed).astype(np.int64)
    if known is None or array.size == 0:
        return True
    bounds = known.least <= array.min() and array.max() <= known.most
    return bool(bounds and array.min() <= known.low and array.max() >= known.high)


def leaf(rng: random.Random, unknown: Any) -> Any:
    """Return an integer array of 4 rows and 5 columns, or a scalar."""
    match rng.randrange(7):
        case 0:
            return jnp.arange(ROWS)[:, None] * rng.randint(-3, 3) + jnp.arange(COLUMNS)
        case 1:
            return jnp.broadcast_to(jnp.arange(COLUMNS) + rng.randint(-9, 9), (ROWS, COLUMNS))
        case 2:
            values = [rng.randint(-20, 20) for _ in range(ROWS * COLUMNS)]
            return jnp.array(values).reshape(ROWS, COLUMNS)
        case 3:
            return unknown
        case 4:
            return jnp.int32(rng.randint(-8, 8))
        case 5:
            return jnp.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) * rng.choice((1, -2, 10**8))
        case _:
            return jnp.repeat(jnp.arange(ROWS), COLUMNS).reshape(ROWS, COLUMNS)


def grown(rng: random.Random, unknown: Any, depth: int) -> Any:
    """Return a random expression of integers."""
    if depth == 0:
        return leaf(rng, unknown)
    one = grown(rng, unknown, depth - 1)
    whole = jnp.broadcast_to(one, (ROWS, COLUMNS))
    number = rng.randint(1, 7)
    unary = (
        lambda: -one,
        lambda: one * number,
        lambda: one + number,
        lambda: one // number,
        lambda: one % number,
        lambda: lax.rem(one, jnp.int32(number)),
        lambda: lax.div(one, jnp.int32(number)),
        lambda: jnp.abs(one),
        lambda: jnp.sign(one),
        lambda: one**2,
        lambda: one**3,
        lambda: jnp.clip(one, -number, 2 * number),
        lambda: whole[::-1],
        lambda: whole[:, 1::2].sum(axis=1, keepdims=True) + whole,
        lambda: jnp.cumsum(whole, axis=rng.randrange(2)),
        lambda: whole.max(axis=0) + whole,
        lambda: whole.min() + whole,
        lambda: whole.reshape(-1)[rng.randrange(20) :].sum() + one,
        lambda: jnp.cumsum(whole.reshape(-1)[:7]).sum() - one,
        lambda: jnp.sort(whole, axis=1),
        lambda: jnp.concatenate([whole[:2], whole[1:3]]),
        lambda: jnp.stack([whole, whole + 1])[rng.randrange(2)],
        lambda: jnp.pad(whole[:, :4], ((0, 0), (0, 1))),
        lambda: one & number,
        lambda: jnp.maximum(one, 0) >> 1,
        lambda: one.astype(jnp.int8).astype(jnp.int32),
        lambda: one.astype(jnp.uint16).astype(jnp.int32),
        lambda: jnp.argmax(whole, axis=0) + one,
        lambda: jnp.prod(whole[0, :3]) + one,
        lambda: whole.T.reshape(ROWS, COLUMNS),
        lambda: jnp.tile(whole[:2], (2, 1)),
        lambda: whole[jnp.clip(whole[:, 0], 0, 3)],
        lambda: lax.dynamic_slice(whole, (number - 1, 0), (2, COLUMNS))[:1] + one,
        lambda: one.astype(bool).astype(jnp.int32),
        lambda: (one == number).astype(jnp.int32) + (one != number),
    )
    if rng.random() < 0.5:
        return rng.choice(unary)()
    other = grown(rng, unknown, rng.randrange(depth))
    binary = (
        lambda: one + other,
        lambda: one - other,
        lambda: one * other,
        lambda: jnp.maximum(one, other),
        lambda: jnp.minimum(one, other),
        lambda: jnp.where(one < other, one, other + 1),
        lambda: jnp.where(one >= 0, one, one + number),
        lambda: one // jnp.maximum(jnp.abs(other), 1),
        lambda: one % jnp.maximum(jnp.abs(other), 1),
        lambda: (one <= other) & (other > 0) | ~(one != other),
    )
    return jnp.asarray(rng.choice(binary)()).astype(jnp.int32)


@pytest.mark.search
@pytest.mark.parametrize("seed", part(range(100)))
def test_ranges_hold(seed: int) -> None:
    def function(unknown: Any) -> Any:
        rng = random.Random(seed)
        return grown(rng, unknown, rng.randint(1, 5))

    flow = flow_of(function, jnp.zeros((ROWS, COLUMNS), jnp.int32))
    known = Intervals(flow).of(flow.outputs[0])
    inputs = np.random.default_rng(seed).integers(-(2**31), 2**31, (8, ROWS, COLUMNS))
    for unknown in (*inputs, np.zeros((ROWS, COLUMNS)), np.arange(20).reshape(ROWS, COLUMNS)):
        assert holds(known, jax.jit(function)(jnp.asarray(unknown, jnp.int32)))


@pytest.mark.search
@pytest.mark.parametrize("seed", part(range(60)))
def test_ranges_hold_in_loops(seed: int) -> None:
    def function(unknown: Any) -> Any:
        def body(carry: Any, row: Any) -> Any:
            rng = random.Random(seed)
            counter, kept, wrapped = carry
            choice = rng.choice((counter, row, counter * row, kept, wrapped, counter + row))
            given = jnp.broadcast_to(choice, (ROWS, COLUMNS))
            result = grown(rng, given, rng.randint(1, 3))
            by = rng.randint(-2, 2)
            return (counter + by, kept, (wrapped + 1) % 4), jnp.asarray(result, jnp.int32)

        rng = random.Random(seed)
        rows = jnp.arange(6) * rng.randint(-3, 3) + rng.randint(-9, 9)
        start = (jnp.int32(rng.randint(-5, 5)), unknown, jnp.int32(0))
        return lax.scan(body, start, rows, reverse=bool(rng.randrange(2)))[1]

    unknown = jnp.arange(20).reshape(ROWS, COLUMNS)
    flow = flow_of(function, unknown)
    scan = next(step for step in flow.steps.values() if step.primitive == "scan")
    known = Intervals(flow).of(scan.bodies[0].outputs[-1])
    assert holds(known, jax.jit(function)(unknown))


@pytest.mark.parametrize(("start", "end", "by"), [(0, 10, 1), (3, 11, 3), (-5, 0, 2), (2, 3, 7)])
def test_counters_of_while_loops_are_exact(start: int, end: int, by: int) -> None:
    def counted() -> Any:
        return lax.while_loop(lambda i: i < end, lambda i: i + by, start)

    flow = flow_of(counted)
    loop = next(step for step in flow.steps.values() if step.primitive == "while")
    body = next(part for part in loop.bodies if part.name == "body")
    known = Intervals(flow).of(body.inputs[-1])
    counters = range(start, end, by)
    assert known is not None
    assert (known.least, known.most) == (counters[0], counters[-1])
    assert (known.low, known.high) == (counters[0], counters[-1])


def test_windows_are_exact() -> None:
    def function() -> Any:
        return jnp.arange(1000)[:, None] * 2 + jnp.arange(5)[None, :]

    flow = flow_of(function)
    known = Intervals(flow).of(flow.outputs[0])
    assert known is not None
    assert (known.least, known.low, known.high, known.most) == (0, 0, 2002, 2002)


X = jnp.linspace(-3.0, 3.0, ROWS * COLUMNS).reshape(ROWS, COLUMNS)


@pytest.mark.parametrize(
    ("function", "least", "most"),
    [
        (jax.nn.softmax, 0, 1),
        (lambda x: jnp.exp(-jnp.abs(x)), 0, 1),
        (lambda x: jnp.stack([jnp.abs(x), -jnp.abs(x)]), -np.inf, np.inf),
        (lambda x: jnp.sum(jnp.cos(x), axis=0), -ROWS, ROWS),
        (lambda x: jnp.clip(x, -1, 2) * jnp.tanh(x), -2, 2),
        (lambda x: 1 / (1 + x**2), 0, 1),
        (lambda x: jnp.arange(1, 9) / 8.0 + 0 * x[0, 0], 0.125, 1),
        (lambda x: (jax.nn.sigmoid(x) * 9).astype(jnp.int32), 0, 9),
    ],
)
def test_bounds_of_floats_are_those_of_exact_arithmetic(
    function: Callable[..., Any], least: float, most: float
) -> None:
    flow = flow_of(function, X)
    low, high = ValueBounds(flow).bounds(flow.outputs[0])
    computed = np.asarray(function(X))
    assert low <= computed.min() + 1e-6
    assert computed.max() - 1e-6 <= high
    assert least <= low + 1e-6
    assert high - 1e-6 <= most
