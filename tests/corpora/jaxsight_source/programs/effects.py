"""Callbacks, prints and references."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import checkify, io_callback

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


def _host(x: Any) -> Any:
    return np.sin(x)


@program(gradient=False)
def pure_callback_to_the_host() -> Call:
    def run(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(_host, shape, x) + jax.pure_callback(_host, shape, x * 2)

    return called(run, floats(3))


@program(gradient=False)
def pure_callback_under_vmap() -> Call:
    def run(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct((), x.dtype)
        whole = partial(jax.pure_callback, _host, shape)
        return jax.vmap(partial(whole, vmap_method="expand_dims"))(x), jax.vmap(
            partial(whole, vmap_method="sequential")
        )(x)

    return called(run, floats(3))


@program(gradient=False)
def io_callbacks_in_order() -> Call:
    def run(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct((), np.float32)
        a = io_callback(lambda v: np.float32(v.sum()), shape, x, ordered=True)
        b = io_callback(lambda v: np.float32(v.max()), shape, x + a, ordered=True)
        io_callback(lambda v: None, None, b)
        return a, b

    return called(run, floats(3))


@program(gradient=False)
def prints_and_debug_callbacks() -> Call:
    def run(x: Any) -> Any:
        jax.debug.print("x is {x} {{and}} {n:.2f}", x=x, n=x.sum(), ordered=True)
        jax.debug.print("plain")
        jax.debug.callback(lambda v, k: None, x, k=x * 2)
        return x + 1

    return called(run, floats(3))


@program(gradient=False)
def callbacks_within_control_flow() -> Call:
    def run(x: Any) -> Any:
        def step(c: Any, v: Any) -> Any:
            jax.debug.callback(lambda v: None, v)
            return c + jax.pure_callback(_host, jax.ShapeDtypeStruct((), v.dtype), v), None

        total, _ = lax.scan(step, jnp.float32(0), x)
        return lax.cond(total > 0, lambda t: (jax.debug.print("up"), t)[1], lambda t: -t, total)

    return called(run, floats(3))


@program(gradient=False)
def references_to_arrays_made_inside() -> Call:
    def run(x: Any) -> Any:
        ref = jax.new_ref(x * 2)
        ref[0] += 5.0
        ref[1:] = ref[:-1] * 2
        old = ref[...]
        ref[...] = jnp.zeros_like(x)
        return old, jax.freeze(ref)

    return called(run, floats(4))


@program(gradient=False)
def references_in_loops() -> Call:
    def run(x: Any) -> Any:
        ref = jax.new_ref(jnp.zeros(4, np.float32))

        def step(i: Any, c: Any) -> Any:
            ref[i] = c
            ref[i] += 1.0
            return c * 2

        final = lax.fori_loop(0, 4, step, x)
        return final, ref[...]

    return called(run, np.float32(1))


@program(gradient=False)
def references_given_by_the_caller() -> Call:
    ref = jax.new_ref(np.arange(4, dtype=np.float32))

    def run(x: Any) -> Any:
        return ref[1:3] * x

    return called(run, np.float32(2))


@program(gradient=False)
def state_that_runs() -> Call:
    from jax._src.state.discharge import run_state  # the only way to the primitive

    def run(x: Any) -> Any:
        def body(refs: Any) -> None:
            a, b = refs
            a[...] = a[...] * 2
            b[0] += a[1]

        return run_state(body)((x, x + 1))

    return called(run, floats(3))


@program(gradient=False)
def checks_made_functional() -> Call:
    def run(x: Any) -> Any:
        def checked(v: Any) -> Any:
            checkify.check(v.sum() > 0, "sum is {s}", s=v.sum())
            return jnp.log(v)

        error, out = checkify.checkify(checked, errors=checkify.user_checks)(x)
        return out, error.get is not None

    return called(run, floats(3, low=0.5, high=2))


@program(gradient=False)
def tokens_and_ordering() -> Call:
    def run(x: Any) -> Any:
        token = lax.create_token(x)
        both = lax.after_all(token, lax.create_token())
        del both
        return x + 1

    return called(run, integers(2))


@program(gradient=False, since=(0, 9))
def sinks_of_dead_code() -> Call:
    def run(x: Any) -> Any:
        lax.dce_sink(jnp.sin(x))
        return x + 1

    return called(run, floats(2))


@program(gradient=False)
def callbacks_within_jitted_functions() -> Call:
    @jax.jit
    def inner(x: Any) -> Any:
        return jax.pure_callback(_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1

    @jax.jit
    def outer(x: Any) -> Any:
        return inner(x) * 2

    return called(lambda x: outer(inner(x)), floats(3))
