"""The pretty style writes StableHLO with the names and broadcasts that people would write."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from inline_snapshot import snapshot
from jax import lax

import jaxsight
from tests.jaxsight_source.stablehlo.whole_programs import struct


def text_of(function: Callable[..., object], *structs: object) -> str:
    """Return the functions written from a StableHLO text without any locations."""
    return of_text(jax.jit(function).lower(*structs).as_text())


def of_text(stablehlo: str) -> str:
    source = jaxsight.sourcerize(stablehlo.encode(), style="pretty")
    assert {"stablehlo", "bits"} <= {*source.proofs}
    _, start, functions = source.partition("\ndef ")
    return (start + functions).strip() + "\n"


def test_scalars_and_rows_are_broadcast_by_jax():
    def function(x, y, b):
        return 2 * jnp.tanh(x) + 1 + y * 3.0 + b, x / jnp.sqrt(y.sum())

    assert text_of(function, struct(10, 4), struct(10, 4), struct(4)) == snapshot("""\
def function(x, y, z):
    add_1 = 2.0 * jnp.tanh(x) + 1.0 + y * 3.0
    return add_1 + z, x / jnp.sqrt(jnp.sum(y))
""")


def test_a_broadcast_that_is_used_twice_is_written():
    def function(x, y):
        wide = jnp.broadcast_to(y, x.shape)
        return x * wide, x + wide

    assert text_of(function, struct(3, 4), struct(1, 4)) == snapshot("""\
def function(x, y):
    broadcast = jnp.broadcast_to(y, (3, 4))
    return x * broadcast, x + broadcast
""")


def test_an_outer_product_broadcasts_both_operands():
    def function(x, y):
        return x[:, None] * y[None]

    assert text_of(function, struct(3), struct(4)) == snapshot("""\
def function(x, y):
    return x[:, None] * y
""")


def test_attention_is_softmax_of_masked_scores():
    def attention(q, k, v):
        scores = jnp.einsum("btd,bsd->bts", q, k) / np.sqrt(8.0)
        mask = jnp.tril(jnp.ones((4, 6), bool))
        return jax.nn.softmax(jnp.where(mask, scores, -1e9)) @ v

    structs = struct(2, 4, 8), struct(2, 6, 8), struct(2, 6, 8)
    assert text_of(attention, *structs) == snapshot("""\
def attention(x, y, z):
    div = jnp.einsum("bik,bpk->bip", x, y) / 2.828427
    lower = jnp.tril(jnp.ones((4, 6), jnp.bool_))
    return jax.nn.softmax(jnp.where(lower, div, -1000000000.0)) @ z
""")


def test_layer_norm_is_of_mean_and_variance():
    def layer_norm(x, scale, bias):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * scale + bias

    assert text_of(layer_norm, struct(8, 16), struct(16), struct(16)) == snapshot("""\
def layer_norm(x, y, z):
    sub = x - jnp.mean(x, axis=1, keepdims=True)
    mul_1 = sub * lax.rsqrt(jnp.var(x, axis=1, keepdims=True) + 1e-06) * y
    return mul_1 + z
""")


def test_cross_entropy_is_of_log_softmax():
    def cross_entropy(logits, labels):
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -chosen.mean() + jax.nn.logsumexp(logits)

    structs = struct(8, 5), struct(8, dtype=jnp.int32)
    assert text_of(cross_entropy, *structs) == snapshot("""\
def cross_entropy(x, y):
    taken = jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None])
    return -jnp.mean(taken) + jax.nn.logsumexp(x)
""")


def test_activations_have_their_names():
    def activations(x):
        return jax.nn.silu(x), jax.nn.relu(x), jax.nn.softplus(x), jax.nn.gelu(x), jnp.clip(x, 0, 1)

    assert text_of(activations, struct(4, 3)) == snapshot("""\
def activations(x):
    silu = jax.nn.silu(x)
    return silu, jax.nn.relu(x), jax.nn.softplus(x), jax.nn.gelu(x), jnp.clip(x, 0, 1)
""")


def test_random_numbers_are_drawn_by_name():
    def samples(key):
        return jax.random.normal(key, (3, 2)), jax.random.uniform(key, (4,))

    assert text_of(samples, struct(2, dtype=jnp.uint32)) == snapshot("""\
def samples(x):
    return jax.random.normal(x, (3, 2)), jax.random.uniform(x, (4,))
""")


def test_a_scan_names_what_it_carries():
    def recurrent(w, xs):
        def step(h, x):
            h = jnp.tanh(w @ h + x)
            return h, h.sum()

        return lax.scan(step, jnp.zeros(4), xs)

    assert text_of(recurrent, struct(4, 4), struct(7, 4)) == snapshot("""\
def recurrent(x, y):
    def body(carry, element):
        tanh = jnp.tanh(x @ carry + element)
        return tanh, jnp.sum(tanh)

    return lax.scan(body, jnp.zeros(4), y)
""")


def test_what_only_looks_like_softmax_is_written_out():
    def normalized(x):
        exp = jnp.exp(x - x.max(-1, keepdims=True) + 1)
        return exp / exp.sum(-1, keepdims=True)

    assert text_of(normalized, struct(4, 3)) == snapshot("""\
def normalized(x):
    exp = jnp.exp(x - jnp.max(x, axis=1, keepdims=True) + 1.0)
    return exp / jnp.sum(exp, axis=1, keepdims=True)
""")


def test_a_function_of_a_library_name_that_computes_something_else_is_written_out():
    @jax.jit
    def relu(x):
        return jnp.maximum(x, 1.0)

    def function(x):
        return relu(x) * 2

    assert text_of(function, struct(4)) == snapshot("""\
def relu(x):
    return jnp.maximum(x, 1.0)


def function(x):
    return relu(x) * 2.0
""")


def test_arguments_have_the_names_that_the_file_has():
    text = jax.jit(lambda weight, x: weight @ x).lower(struct(3, 4), struct(4))
    assert "(weight, x)" in of_text(text.as_text(debug_info=True))
    hlo = text.as_text("hlo").encode()
    assert "(weight, x)" in jaxsight.sourcerize(hlo, style="pretty")


def test_calls_of_library_functions_are_found_in_bytecode():
    exported = jax.export.export(jax.jit(jax.nn.softmax))(struct(4, 3))
    artifact = exported.mlir_module_serialized
    assert "jax.nn.softmax(x)" in jaxsight.sourcerize(artifact, style="pretty")
    assert "softmax(" not in jaxsight.sourcerize(artifact).partition("\ndef ")[2][20:]
