"""Kernels of Pallas that jax ships.

Kernels for TPUs are called with `interpret=True` if their function has that option, and are only
traced otherwise.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats
from tests.jaxsight_source.pallas_kernels import named, struct


def tpu_flash_attention() -> Call:
    from jax.experimental.pallas.ops.tpu import flash_attention as module

    heads = struct(1, 2, 256, 128)
    return called(functools.partial(module.flash_attention, causal=True), heads, heads, heads)


def tpu_flash_attention_gradient() -> Call:
    from jax.experimental.pallas.ops.tpu import flash_attention as module

    heads = struct(1, 1, 256, 128)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return module.flash_attention(q, k, v, causal=True).sum()

    return called(jax.grad(loss, argnums=(0, 1, 2)), heads, heads, heads)


def tpu_matmul() -> Call:
    from jax.experimental.pallas.ops.tpu.matmul import matmul

    run = functools.partial(matmul, block_shape=(256, 256), block_k=256)
    return called(run, struct(512, 512), struct(512, 512))


def tpu_megablox_gmm() -> Call:
    from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm

    run = functools.partial(gmm, tiling=(8, 128, 128), interpret=True)
    sizes = np.array([8, 24], np.int32)
    return called(run, floats(32, 128), floats(2, 128, 128), sizes)


def tpu_megablox_tgmm() -> Call:
    from jax.experimental.pallas.ops.tpu.megablox.gmm import tgmm

    run = functools.partial(tgmm, tiling=(8, 128, 128), interpret=True)
    sizes = np.array([8, 24], np.int32)
    return called(run, floats(128, 32), floats(32, 128), sizes)


def tpu_splash_attention() -> Call:
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as module
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    mask = masks.MultiHeadMask([masks.CausalMask((256, 256))] * 2)
    attention = module.make_splash_mha_single_device(mask)
    heads = struct(2, 256, 128)
    return called(lambda q, k, v: attention(q, k, v), heads, heads, heads)


def tpu_paged_attention() -> Call:
    from jax.experimental.pallas.ops.tpu.paged_attention.paged_attention_kernel import (
        paged_attention,
    )

    run = functools.partial(paged_attention, pages_per_compute_block=4)
    pages = struct(2, 16, 16, 128)
    ints = functools.partial(struct, dtype=jnp.int32)
    return called(run, struct(4, 8, 128), pages, pages, ints(4), ints(4, 8))


def tpu_ragged_paged_attention() -> Call:
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention.kernel import (
        ragged_paged_attention,
    )

    run = functools.partial(
        ragged_paged_attention, num_kv_pages_per_block=4, num_queries_per_block=16
    )
    ints = functools.partial(struct, dtype=jnp.int32)
    return called(
        run,
        struct(32, 8, 128, dtype=jnp.bfloat16),
        struct(16, 16, 8, 128, dtype=jnp.bfloat16),
        ints(4),
        ints(4, 8),
        ints(5),
        ints(1),
    )


def tpu_threefry() -> Call:
    from jax.experimental.pallas.ops.tpu.random.threefry import plthreefry_random_bits

    key = struct(2, dtype=jnp.uint32)
    return called(lambda key: plthreefry_random_bits(key, 32, (256, 256)), key)


def gpu_attention() -> Call:
    from jax.experimental.pallas.ops.gpu.attention import mha

    run = functools.partial(mha, segment_ids=None, causal=True, interpret=True)
    heads = floats(1, 64, 1, 32)
    return called(run, heads, heads, heads)


def gpu_attention_gradient() -> Call:
    from jax.experimental.pallas.ops.gpu.attention import mha

    def loss(q: Any, k: Any, v: Any) -> Any:
        return mha(q, k, v, segment_ids=None, interpret=True).sum()

    heads = floats(1, 64, 1, 32)
    return called(jax.grad(loss, argnums=(0, 1, 2)), heads, heads, heads)


def gpu_decode_attention() -> Call:
    from jax.experimental.pallas.ops.gpu.decode_attention import mqa

    run = functools.partial(mqa, block_h=16, block_k=32, k_splits=2, interpret=True)
    return called(run, floats(1, 16, 32), floats(1, 64, 32), floats(1, 64, 32))


def gpu_softmax() -> Call:
    from jax.experimental.pallas.ops.gpu.softmax import softmax

    return called(functools.partial(softmax, interpret=True), floats(4, 100))


def gpu_layer_norm() -> Call:
    from jax.experimental.pallas.ops.gpu.layer_norm import layer_norm

    run = functools.partial(layer_norm, interpret=True)
    return called(run, floats(1, 4, 256), floats(256), floats(256))


def gpu_rms_norm() -> Call:
    from jax.experimental.pallas.ops.gpu.rms_norm import rms_norm

    run = functools.partial(rms_norm, interpret=True)
    return called(run, floats(1, 4, 256), floats(256), floats(256))


def gpu_paged_attention() -> Call:
    from jax.experimental.pallas.ops.gpu.paged_attention import paged_attention

    run = functools.partial(
        paged_attention, block_h=16, pages_per_compute_block=2, k_splits=2, interpret=True
    )
    pages = floats(1, 8, 8, 32)
    table = np.arange(8, dtype=np.int32).reshape(1, 8)
    return called(run, floats(1, 16, 32), pages, pages, table, np.array([40], np.int32))


KERNELS = named(
    [
        tpu_flash_attention,
        tpu_flash_attention_gradient,
        tpu_matmul,
        tpu_megablox_gmm,
        tpu_megablox_tgmm,
        tpu_splash_attention,
        tpu_paged_attention,
        tpu_ragged_paged_attention,
        tpu_threefry,
        gpu_attention,
        gpu_attention_gradient,
        gpu_decode_attention,
        gpu_softmax,
        gpu_layer_norm,
        gpu_rms_norm,
        gpu_paged_attention,
    ]
)
