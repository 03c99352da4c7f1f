"""Loops and branches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


@program()
def scan_of_a_carry_alone() -> Call:
    def compound(x: Any) -> Any:
        final, nothing = lax.scan(lambda c, _: (jnp.sin(c) * 1.5, None), x, None, length=5)
        assert nothing is None
        return final

    return called(compound, floats(3))


@program()
def scan_with_a_captured_value_that_nothing_is_done_with() -> Call:
    def rows(x: Any, key: Any) -> Any:
        first, second = jax.random.split(key)

        def step(state: Any, row: Any) -> Any:
            total, held = state
            return (total + row.sum(), held), total

        (total, _), partial = lax.scan(step, (jnp.float32(0), first), x)
        return total, partial, jax.random.normal(second, (2,))

    return called(rows, floats(3, 4), jax.random.PRNGKey(0))


@program()
def scan_without_a_carry() -> Call:
    def squares(xs: Any) -> Any:
        return lax.scan(lambda c, x: ((), (x * x, x + 1)), (), xs)[1]

    return called(squares, floats(4, 2))


@program()
def scan_in_reverse_unrolled() -> Call:
    def discounted(rewards: Any, gamma: Any) -> Any:
        return lax.scan(lambda c, r: (r + gamma * c,) * 2, 0.0, rewards, reverse=True, unroll=3)

    return called(discounted, floats(7), np.float32(0.9))


@program()
def scan_with_one_carry_one_x_and_several_ys() -> Call:
    def statistics(x: Any, xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            return carry + x, (carry, x * 2, 1.0, jnp.int8(3))

        return lax.scan(step, x, xs)

    return called(statistics, np.float32(1), floats(5))


@program()
def scan_over_pytrees_with_captured_arrays() -> Call:
    weights = jnp.arange(6, dtype=np.float32).reshape(2, 3) / 7
    bias = jnp.array([0.5, -0.5, 0.25], np.float32)

    def run(state: Any, xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            h = jnp.tanh(x["a"] @ weights + bias + state["h"])
            return {"h": h, "n": state["n"] + 1}, (h.sum(), x["b"])

        return lax.scan(step, state, xs)

    return called(run, {"h": floats(3), "n": 0}, {"a": floats(4, 2), "b": integers(4)})


@program()
def scan_names_that_shadow() -> Call:
    def body(x: Any, carry: Any, ys: Any) -> Any:
        xs, length = x * 2, carry + 1
        scan, jnp_, lax_ = lax.scan(lambda c, y: (c + y, c * xs), length, ys), x, carry
        return scan, jnp_ + lax_

    return called(body, np.float32(2), np.float32(3), floats(4))


@program()
def scan_with_a_literal_output_and_a_passed_through_carry() -> Call:
    def run(a: Any, b: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            first, second = c
            return (second, first), (7, True, x, first)

        return lax.scan(step, (a, b), xs)

    return called(run, floats(2), floats(2) * 2, integers(3))


@program()
def scan_of_length_zero() -> Call:
    def run(x: Any, xs: Any) -> Any:
        return lax.scan(lambda c, y: (c * y, c + y), x, xs)

    return called(run, np.float32(2), floats(0))


@program()
def scans_within_scans() -> Call:
    def table(xs: Any, ys: Any) -> Any:
        def row(total: Any, x: Any) -> Any:
            return lax.scan(lambda t, y: (t + x * y, t), total, ys)

        return lax.scan(row, 0.0, xs)

    return called(table, floats(3), floats(4))


@program(x64=(False,), gradient=False)
def a_hundred_scans_within_each_other() -> Call:
    def nested(x: Any, depth: int) -> Any:
        if not depth:
            return jnp.sin(x)
        return lax.scan(lambda c, _: (nested(c, depth - 1), None), x, None, length=1)[0]

    shape = jax.ShapeDtypeStruct((), np.float32)  # compiling this needs more stack than there is
    return called(lambda x: nested(x, 100), shape, _recursion=20_000)


@program(x64=(False,), gradient=False)
def a_chain_of_a_hundred_thousand_equations() -> Call:
    def chain(x: Any) -> Any:
        for _ in range(50_000):
            x = lax.neg(lax.sin(x))
        return x

    return called(chain, jax.ShapeDtypeStruct((), np.float32))


@program()
def while_with_captures_in_both_halves() -> Call:
    def halve(x: Any, limit: Any, factor: Any) -> Any:
        return lax.while_loop(
            lambda s: jnp.sum(s[0]) > limit, lambda s: (s[0] * factor, s[1] + 1), (x, 0)
        )

    return called(halve, floats(3, low=1, high=4), np.float32(0.5), np.float32(0.75))


@program()
def while_with_captured_constants() -> Call:
    step = jnp.array([0.1, 0.2, 0.3], np.float32)
    bound = jnp.array([1.0, 2.0, 3.0], np.float32)

    def climb(x: Any) -> Any:
        return lax.while_loop(lambda v: jnp.all(v < bound), lambda v: v + step, x)

    return called(climb, floats(3))


@program()
def while_whose_condition_ignores_the_state() -> Call:
    def run(x: Any, go: Any) -> Any:
        return lax.while_loop(lambda s: go & (s[1] < 3), lambda s: (s[0] * 2, s[1] + 1), (x, 0))

    return called(run, floats(2), np.bool_(True))


@program()
def while_batched_by_its_condition() -> Call:
    def collatz(n: Any) -> Any:
        def step(s: Any) -> Any:
            n, i = s
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), i + 1

        return lax.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]

    return called(jax.vmap(collatz), integers(5) + 1)


@program()
def while_with_an_effect() -> Call:
    def count(n: Any) -> Any:
        def step(i: Any) -> Any:
            jax.debug.print("step {i}", i=i)
            return i + 1

        return lax.while_loop(lambda i: i < n, step, 0)

    return called(count, np.int32(3))


@program()
def fori_with_static_bounds() -> Call:
    return called(lambda x: lax.fori_loop(0, 6, lambda i, v: v + i * v, x), floats(3))


@program()
def fori_with_traced_bounds() -> Call:
    def powers(x: Any, low: Any, high: Any) -> Any:
        return lax.fori_loop(low, high, lambda i, v: (v[0] * x, v[1] + i), (x, 0))

    return called(powers, floats(2), np.int32(2), np.int32(5))


@program()
def fori_that_updates_rows() -> Call:
    def fill(x: Any) -> Any:
        return lax.fori_loop(0, 4, lambda i, m: m.at[i].set(m[i - 1] + i), x)

    return called(fill, floats(4, 3))


@program()
def map_with_and_without_batches() -> Call:
    def both(xs: Any) -> Any:
        return lax.map(jnp.sum, xs), lax.map(lambda x: x * 2, xs, batch_size=2)

    return called(both, floats(5, 3))


@program()
def associative_scan_of_matrices() -> Call:
    return called(lambda m: lax.associative_scan(jnp.matmul, m), floats(5, 2, 2))


@program()
def cond_with_literal_results() -> Call:
    def choose(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda x: (1.0, x, 2), lambda x: (0.0, -x, 3), x)

    return called(choose, np.bool_(True), floats(2))


@program()
def cond_over_captured_values() -> Call:
    offset = jnp.array([1.0, 2.0])

    def choose(x: Any, y: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda: x @ y + offset, lambda: offset * y[0])

    return called(choose, floats(2, low=0.5), floats(2, 2))


@program()
def switch_of_four_clamps() -> Call:
    branches = [lambda x: x, jnp.sin, lambda x: x * 2, lambda x: jnp.zeros_like(x)]

    def choose(i: Any, x: Any) -> Any:
        return lax.switch(i, branches, x)

    return called(choose, np.int32(9), floats(3))


@program()
def switch_of_many_batched_becomes_selects() -> Call:
    def choose(i: Any, x: Any) -> Any:
        return lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x)

    return called(jax.vmap(choose), integers(4, modulus=3), floats(4, 2))


@program()
def switch_with_an_unsigned_index() -> Call:
    def choose(i: Any, x: Any) -> Any:
        return lax.switch(i.astype(jnp.int32), [lambda x: (x, 1)] * 2 + [lambda x: (-x, 2)], x)

    return called(choose, np.uint8(2), floats(3))


@program()
def cond_of_one_branch_folds_away() -> Call:
    return called(lambda x: lax.switch(0, [jnp.sin], x) + lax.cond(True, jnp.cos, jnp.sin, x), 0.5)


@program()
def gradient_of_a_scan_of_a_cond() -> Call:
    def loss(x: Any, xs: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            c = lax.cond(y > 0, lambda c: jnp.sin(c * y), lambda c: c / (1 + y * y), c)
            return c, c**2

        final, kept = lax.scan(step, x, xs)
        return final.sum() + kept.sum()

    return called(jax.grad(loss, argnums=(0, 1)), floats(2), floats(6))


@program()
def forward_mode_through_a_while() -> Call:
    def newton(a: Any) -> Any:
        return lax.while_loop(lambda x: x * x - a > 1e-3, lambda x: (x + a / x) / 2, a + 1)

    return called(lambda a, t: jax.jvp(newton, (a,), (t,)), np.float32(2), np.float32(1))


@program()
def platform_dependent_code() -> Call:
    def run(x: Any) -> Any:
        return lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos, default=jnp.tanh)

    return called(run, floats(3))
