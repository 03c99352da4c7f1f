"""Kernels of Pallas in packages other than jax.

Measured with pallas-forge 0.1.2, gdn2-pallas 0.1.1 (its module is `atomic_ops`), atomic-ops 0.2.0
(`atomic_gdn2`), deltanet-tpu 0.3.0, flywheel-tpu 0.3.0, fermix 0.1.0, jax-linear-attention 0.1.0
(`jla`), qwix 0.1.8, tokamax 0.0.17 and ejkernel 0.0.80.3.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers
from tests.jaxsight_source.pallas_kernels import named, struct


def forge_matmul() -> Call:
    from pallas_forge.kernels.matmul import tiled_matmul

    return called(tiled_matmul, floats(200, 256), floats(256, 128))


def forge_rmsnorm() -> Call:
    from pallas_forge.kernels.rmsnorm import fused_rmsnorm_residual

    return called(fused_rmsnorm_residual, floats(2, 12, 128), floats(2, 12, 128), floats(128))


def forge_swiglu() -> Call:
    from pallas_forge.kernels.swiglu import fused_swiglu

    return called(fused_swiglu, floats(128, 128), floats(128, 256), floats(128, 256))


def atomic_ops_forward() -> Call:
    from atomic_ops import gdn2_pallas_forward

    heads = struct(1, 256, 1, 128)
    run = functools.partial(gdn2_pallas_forward, scale=0.1)
    return called(lambda q, k, v, w, b, g: run(q, k, v, w, b, g), *[heads] * 6)


def atomic_ops_scores() -> Call:
    from atomic_ops.gdn2_fwd import build_chunk_scores_pallas

    heads = floats(1, 256, 1, 128)
    return called(
        lambda q, k, b, g: build_chunk_scores_pallas(q, k, b, g, 0.1, interpret=True), *[heads] * 4
    )


def gdn2_scores() -> Call:
    from atomic_gdn2.config import BLRConfig
    from atomic_gdn2.fwd.scores import build_scores

    chunks = floats(1, 1, 1, 128, 128)
    return called(lambda q, k, b, g: build_scores(q, k, b, g, 0.1, BLRConfig()), *[chunks] * 4)


def deltanet_chunks() -> Call:
    from deltanet_tpu import chunk_gdn2

    heads = struct(1, 256, 2, 128)
    return called(lambda q, k, v, g, b, w: chunk_gdn2(q, k, v, g, b, w), *[heads] * 6)


def deltanet_chunks_gradient() -> Call:
    from deltanet_tpu import chunk_gdn2

    heads = struct(1, 256, 2, 128)

    def loss(q: Any, k: Any, v: Any, g: Any, b: Any, w: Any) -> Any:
        return chunk_gdn2(q, k, v, g, b, w).sum()

    return called(jax.grad(loss, argnums=(0, 1, 2)), *[heads] * 6)


def flywheel_attention() -> Call:
    from flywheel_tpu import flash_attn_func

    heads = struct(1, 2, 256, 128, dtype=jnp.bfloat16)
    return called(functools.partial(flash_attn_func, causal=True), heads, heads, heads)


def fermix_slogdet() -> Call:
    from fermix import _lu
    from fermix._field import Field

    field = Field(jnp.dtype(np.float32))
    run = functools.partial(_lu._lu_core, n=64, fld=field, prec="ieee", unroll_steps=None)
    return called(lambda a: run(field.split(a)), struct(2, 64, 64))


def jla_piece_scan() -> Call:
    from jla.ops.mosaic_gpu.scalar_gate_scan import piece_scan

    pieces = floats(1, 2, 1, 128, 128)
    skip = np.zeros((1, 2, 1), np.int32)
    run = functools.partial(piece_scan, value_dim=128, interpret=True)
    return called(lambda local, maps, skip: run(local, maps, None, skip), pieces, pieces, skip)


def jla_fp8_swiglu() -> Call:
    from jla.layers.fp8_swiglu import swiglu_quantize

    run = functools.partial(swiglu_quantize, impl="pallas")
    return called(run, struct(128, 2, 256, dtype=jnp.bfloat16), struct())


def qwix_quantized_matmul() -> Call:
    from jax.experimental import pallas as pl
    from qwix import pallas as qpl

    def body(x_ref: Any, y_ref: Any, out_ref: Any) -> None:
        out_ref[...] = qpl.dot(x_ref[...], y_ref[...])

    def product(x: Any, y: Any) -> Any:
        quantized = qpl.quantize(y, "int8", channelwise_axes=[1])
        return qpl.pallas_call(
            body,
            jax.ShapeDtypeStruct((128, 128), jnp.float32),
            grid=(1,),
            in_specs=[pl.BlockSpec((128, 128), lambda i: (0, 0))] * 2,
            out_specs=pl.BlockSpec((128, 128), lambda i: (0, 0)),
            interpret=True,
        )(x, quantized)

    return called(product, floats(128, 128), floats(128, 128))


def tokamax_router_topk() -> Call:
    from tokamax._src.ops.router_topk.pallas_mosaic_tpu_kernel import select

    return called(lambda x: select(x, 4, interpret=True), floats(64, 128))


def tokamax_mhc_mixes() -> Call:
    from tokamax._src.ops.mhc.pre_kernel import mhc_pre_mixes

    return called(mhc_pre_mixes, struct(64, 512, dtype=jnp.bfloat16), struct(24, 512))


def tokamax_splash_attention() -> Call:
    from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_kernel as module
    from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_mask as masks

    attention = module.make_splash_mha_single_device(masks.CausalMask((1024, 1024)))
    heads = struct(2, 1024, 128)
    return called(lambda q, k, v: attention(q, k, v), heads, heads, heads)


def ejkernel_grouped_matmul() -> Call:
    from ejkernel.kernels._pallas.tpu.grouped_matmul import grouped_matmul

    sizes = np.array([100, 156], np.int32)
    run = functools.partial(grouped_matmul, interpret=True)
    return called(lambda x, y, n: run(x, y, n), floats(256, 128), floats(2, 128, 128), sizes)


def ejkernel_flash_attention() -> Call:
    from ejkernel.kernels._pallas.tpu.flash_attention import flash_attention

    heads = struct(1, 256, 2, 128)
    return called(lambda q, k, v: flash_attention(q, k, v, causal=True), heads, heads, heads)


def ejkernel_ragged_decode() -> Call:
    from ejkernel.kernels._pallas.tpu.ragged_decode_attention import ragged_decode_attention

    keys = struct(2, 256, 2, 128)
    ints = integers(2, modulus=5)
    run = ragged_decode_attention
    return called(
        lambda q, k, v, a, b: run(q, k, v, a, b), struct(2, 8, 128), keys, keys, ints, ints + 100
    )


def ejkernel_page_attention() -> Call:
    from ejkernel.kernels._pallas.tpu.page_attention import page_attention

    pages = struct(2, 16, 16, 128)
    run = functools.partial(page_attention, pages_per_compute_block=4)
    return called(
        lambda q, k, v, n, t: run(q, k, v, n, t),
        struct(4, 8, 128),
        pages,
        pages,
        np.full(4, 100, np.int32),
        integers(4, 8),
    )


LIBRARY_KERNELS = named(
    [
        forge_matmul,
        forge_rmsnorm,
        forge_swiglu,
        atomic_ops_forward,
        atomic_ops_scores,
        gdn2_scores,
        deltanet_chunks,
        deltanet_chunks_gradient,
        flywheel_attention,
        fermix_slogdet,
        jla_piece_scan,
        jla_fp8_swiglu,
        qwix_quantized_matmul,
        tokamax_router_topk,
        tokamax_mhc_mixes,
        tokamax_splash_attention,
        ejkernel_grouped_matmul,
        ejkernel_flash_attention,
        ejkernel_ragged_decode,
        ejkernel_page_attention,
    ]
)
