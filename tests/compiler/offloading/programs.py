"""Programs that move data between the host and the device, in the ways of JAX's documentation.

`PROGRAMS` has each with its arguments; `host(…)` is an array in the host's pinned memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import SingleDeviceSharding

SIZE = 512


@dataclass(frozen=True)
class Program:
    """A function and the arguments that it is compiled with."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def device(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """Return an array in the memory of the device."""
    return jax.ShapeDtypeStruct(shape or (SIZE, SIZE), dtype)


def host(*shape: int, dtype: Any = jnp.float32, kind: str = "pinned_host") -> jax.ShapeDtypeStruct:
    """Return an array in the memory of the host."""
    return jax.ShapeDtypeStruct(shape or (SIZE, SIZE), dtype, sharding=_in(kind))


def _in(kind: str) -> SingleDeviceSharding:
    return SingleDeviceSharding(jax.devices("cpu")[0], memory_kind=kind)


def _to_host(x: Any) -> Any:
    return jax.device_put(x, jax.memory.Space.Host)


def _to_device(x: Any) -> Any:
    return jax.device_put(x, jax.memory.Space.Device)


def _offload(*names: str, saved: tuple[str, ...] = ()) -> Any:
    return jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=list(saved),
        names_which_can_be_offloaded=list(names),
        offload_src="device",
        offload_dst="pinned_host",
    )


PROGRAMS: dict[str, Program] = {}


def _program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = Program(function, arguments)
        return function

    return add


# Results and arguments on the host.


@_program(device())
def result_to_host(x):
    return _to_host(x * 2)


@_program(device())
def argument_to_host(x):
    return _to_host(x)


@_program(device(), device(256, 128, dtype=jnp.bfloat16))
def two_results_to_host(x, y):
    return _to_host(jnp.sin(x)), _to_host(y + 1)


@_program(device())
def result_on_both(x):
    y = jnp.tanh(x)
    return y, _to_host(y)


@_program(host(), device())
def weights_from_host(w, x):
    return x @ _to_device(w)


@_program(host(dtype=jnp.bfloat16), device(dtype=jnp.bfloat16))
def weights_used_twice(w, x):
    w = _to_device(w)
    return jnp.tanh(x @ w) @ w


@_program(host(), device())
def weights_updated_on_host(w, x):
    updated = _to_device(w) - 0.1 * x
    return _to_host(updated)


@_program(host(kind="unpinned_host"), device())
def weights_from_unpinned_host(w, x):
    return x + _to_device(w)


@_program(device())
def sharding_of_host(x):
    return jax.device_put(x + 1, _in("pinned_host"))


@_program(device())
def transfer_by_memory_kind(x):
    return jax.device_put(x + 1, _in("pinned_host")), jax.device_put(x - 1, _in("device"))


out_sharding = jax.jit(lambda x: x * 3, out_shardings=_in("pinned_host"))
PROGRAMS["out_sharding"] = Program(out_sharding, (device(),))
in_sharding = jax.jit(
    lambda w, x: jax.device_put(w, jax.memory.Space.Device) * x,
    in_shardings=(_in("pinned_host"), _in("device")),
)
PROGRAMS["in_sharding"] = Program(in_sharding, (device(), device()))


passed_through = jax.jit(lambda w, x: (w, x * 2), out_shardings=(_in("pinned_host"), _in("device")))
PROGRAMS["passed_through"] = Program(passed_through, (host(), device()))


# Residuals offloaded by a policy of `jax.checkpoint`.


def _layer(w, x):
    h = checkpoint_name(jnp.sin(x @ w), "h")
    return jnp.tanh(h @ w)


@_program(device(), device())
def remat_one_layer(w, x):
    layer = jax.checkpoint(_layer, policy=_offload("h"))
    return jax.grad(lambda w: layer(w, x).sum())(w)


@_program(device(4, SIZE, SIZE), device())
def remat_unrolled_layers(ws, x):
    def loss(ws):
        h = x
        for index in range(4):
            h = jax.checkpoint(_layer, policy=_offload("h"))(ws[index], h)
        return h.sum()

    return jax.grad(loss)(ws)


@_program(device(8, SIZE, SIZE), device())
def remat_in_scan(ws, x):
    @functools.partial(jax.checkpoint, policy=_offload("h"))
    def body(x, w):
        return _layer(w, x), None

    return jax.grad(lambda ws: jax.lax.scan(body, x, ws)[0].sum())(ws)


@_program(device(8, SIZE, SIZE), device(dtype=jnp.bfloat16))
def remat_bfloat16_in_scan(ws, x):
    @functools.partial(jax.checkpoint, policy=_offload("h"))
    def body(x, w):
        return _layer(w.astype(jnp.bfloat16), x), None

    return jax.grad(lambda ws: jax.lax.scan(body, x, ws)[0].sum().astype(jnp.float32))(ws)


@_program(device(8, SIZE, SIZE), device())
def remat_saved_and_offloaded(ws, x):
    def layer(w, x):
        a = checkpoint_name(jnp.sin(x @ w), "a")
        b = checkpoint_name(jnp.cos(a @ w), "b")
        return jnp.tanh(b @ w)

    @functools.partial(jax.checkpoint, policy=_offload("b", saved=("a",)))
    def body(x, w):
        return layer(w, x), None

    return jax.grad(lambda ws: jax.lax.scan(body, x, ws)[0].sum())(ws)


@_program(device(), device())
def remat_dots(w, x):
    policy = jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    layer = jax.checkpoint(_layer, policy=policy)
    return jax.grad(lambda w: layer(w, x).sum())(w)


@_program(device(6, 256, 256), device(256, 256))
def remat_dots_in_scan(ws, x):
    policy = jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")

    @functools.partial(jax.checkpoint, policy=policy)
    def body(x, w):
        return _layer(w, x), None

    return jax.grad(lambda ws: jax.lax.scan(body, x, ws)[0].sum())(ws)


@_program(device(4, 256, 256), device(128, 256))
def remat_value_and_grad(ws, x):
    @functools.partial(jax.checkpoint, policy=_offload("h"))
    def body(x, w):
        return _layer(w, x), jnp.mean(x)

    def loss(ws):
        final, means = jax.lax.scan(body, x, ws)
        return (final**2).sum() + means.sum()

    return jax.value_and_grad(loss)(ws)


@_program(device(4, 3, 256, 256), device(2, 64, 256))
def remat_attention_in_scan(ws, x):
    @functools.partial(jax.checkpoint, policy=_offload("scores"))
    def body(x, w):
        q, k, v = (x @ w[0], x @ w[1], x @ w[2])
        scores = checkpoint_name(jax.nn.softmax(q @ k.swapaxes(-1, -2)), "scores")
        return x + scores @ v, None

    return jax.grad(lambda ws: jax.lax.scan(body, x, ws)[0].sum())(ws)


# The state of an optimizer on the host.


def _adam(w, m, v, g):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


@_program(device(), host(), host(), device())
def adam_on_host_moments(w, m, v, g):
    w, m, v = _adam(w, _to_device(m), _to_device(v), g)
    return w, _to_host(m), _to_host(v)


@_program(
    {"a": device(), "b": device(64)},
    {"a": host(), "b": host(64)},
    {"a": host(), "b": host(64)},
    {"a": device(), "b": device(64)},
)
def adam_of_a_tree(w, m, v, g):
    updated = jax.tree.map(_adam, w, _to_device(m), _to_device(v), g)
    new = jax.tree.transpose(jax.tree.structure(w), jax.tree.structure((0, 0, 0)), updated)
    return new[0], _to_host(new[1]), _to_host(new[2])


@_program(device(), host(), device(128, SIZE))
def momentum_step(w, m, x):
    g = jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)
    m = 0.9 * _to_device(m) + g
    return w - 0.1 * m, _to_host(m)


donated_momentum = jax.jit(momentum_step, donate_argnums=(0, 1))
PROGRAMS["donated_momentum"] = Program(donated_momentum, (device(), host(), device(128, SIZE)))


@_program(device(4, SIZE, SIZE), host(4, SIZE, SIZE), device(4, SIZE, SIZE))
def momentum_of_layers(ws, ms, gs):
    results = [
        (ws[index] - 0.1 * m, _to_host(m))
        for index in range(4)
        for m in [0.9 * _to_device(ms)[index] + gs[index]]
    ]
    return [w for w, _ in results], [m for _, m in results]


# Parameters streamed from the host, layer by layer.


@_program(host(8, SIZE, SIZE), device())
def streamed_in_scan(ws, x):
    def body(x, w):
        return jnp.tanh(x @ _to_device(w)), None

    return jax.lax.scan(body, x, ws)[0]


@_program([host() for _ in range(4)], device())
def streamed_unrolled(ws, x):
    for w in ws:
        x = jnp.tanh(x @ _to_device(w))
    return x


@_program(host(8, SIZE, SIZE), device())
def streamed_by_index(ws, x):
    def body(index, x):
        w = jax.lax.dynamic_index_in_dim(ws, index, keepdims=False)
        return jnp.tanh(x @ _to_device(w))

    return jax.lax.fori_loop(0, 8, body, x)


@_program(host(8, SIZE, SIZE), device())
def streamed_until(ws, x):
    def body(state):
        index, x = state
        w = jax.lax.dynamic_index_in_dim(ws, index % 8, keepdims=False)
        return index + 1, jnp.tanh(x @ _to_device(w))

    return jax.lax.while_loop(lambda state: state[1][0, 0] < 0.5, body, (0, x))


@_program(device(8, SIZE, SIZE), device())
def stacked_on_host(ws, x):
    def body(x, w):
        x = jnp.tanh(x @ w)
        return x, _to_host(x)

    return jax.lax.scan(body, x, ws)


@_program(host(4096, 256), device(16, dtype=jnp.int32))
def rows_of_a_table(table, rows):
    return jnp.take(_to_device(table), rows, axis=0)


@_program(host(), device())
def in_a_branch(w, x):
    return jax.lax.cond(x[0, 0] > 0, lambda: _to_device(w) + x, lambda: x)


# Activations that wait on the host.


@_program(device())
def activation_waits(x):
    y = _to_host(jnp.sin(x))
    z = jnp.cos(x) @ x
    for _ in range(3):
        z = jnp.tanh(z @ x)
    return _to_device(y) + z, y


@_program(device(4, SIZE, SIZE))
def chunks_to_host(x):
    return [_to_host(jnp.cumsum(x[index], axis=0)) for index in range(4)]


# Host callbacks.


@_program(device(128))
def pure_callback(x):
    shape = jax.ShapeDtypeStruct((128,), jnp.float32)
    return jax.pure_callback(np.sin, shape, x * 2) + 1


@_program(device(128), device(64, 2, dtype=jnp.int32))
def callback_of_two(x, y):
    shapes = (jax.ShapeDtypeStruct((32,), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32))
    return jax.pure_callback(lambda x, y: (x[:32], y.sum()), shapes, x, y)


@_program(device(128))
def io_callback_ordered(x):
    from jax.experimental import io_callback

    return io_callback(np.cos, jax.ShapeDtypeStruct((128,), jnp.float32), x, ordered=True)


@_program(device(128))
def debug_print(x):
    jax.debug.print("sum {}", x.sum())
    return x * 2


@_program(device(16, 64))
def callback_in_scan(x):
    def body(total, row):
        jax.debug.callback(lambda row: None, row)
        return total + row, None

    return jax.lax.scan(body, jnp.zeros(64), x)[0]


@_program(device(64))
def callback_without_operands(x):
    from jax.experimental import io_callback

    return x + io_callback(lambda: np.float32(1), jax.ShapeDtypeStruct((), jnp.float32))


@_program(device(SIZE, SIZE), host())
def callback_and_offload(x, w):
    jax.debug.callback(lambda x: None, x[0])
    return _to_host(x @ _to_device(w))


@_program(host(), device())
def computed_on_host(w, x):
    return _to_device(_on_host(lambda w: w * 2)(w)) + x


@_program(device())
def computed_on_host_with_result(x):
    return _to_device(_on_host(lambda y: y * 3)(_to_host(x))) + x


def _on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    from jax.experimental import compute_on

    wrapper = getattr(compute_on, "compute_on2", compute_on.compute_on)
    return wrapper(function, compute_type="device_host", out_memory_spaces=jax.memory.Space.Host)
