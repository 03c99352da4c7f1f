"""Indexing, sorting, windows, convolutions and contractions in their many variants."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


@program()
def indexing_of_all_sorts() -> Call:
    def run(x: Any, i: Any, m: Any) -> Any:
        return (
            x[1], x[-1, ..., None], x[::2, 1:3], x[::-1, -2:], x[i], x[:, i], x[i, i], x[i[:, None], i],
            x[0, i[0]], x[m.astype(jnp.int32)], x[..., 1], x[jnp.array([2, 0])],
            x.at[i].get(mode="fill", fill_value=-1.0), x.at[i].get(mode="clip", indices_are_sorted=True),
        )  # fmt: skip

    return called(run, floats(4, 5), integers(3, modulus=4), integers(4, modulus=2))


@program()
def updates_of_all_sorts() -> Call:
    def run(x: Any, i: Any, v: Any) -> Any:
        return (
            x.at[1].set(0), x.at[i].add(v), x.at[i, 1].multiply(2.0), x.at[:, 2].min(0.25), x.at[i].max(v),
            x.at[::2].set(1.5), x.at[-1, -1].set(v[0, 0]), x.at[i].set(v, mode="drop", unique_indices=True),
            x.at[1:3].divide(3.0), x.at[i].power(2), x.at[i].apply(jnp.sin), x.at[i].subtract(v),
        )  # fmt: skip

    return called(run, floats(4, 3), integers(2, modulus=4), floats(2, 3))


@program()
def dynamic_slices_with_negative_starts() -> Call:
    def run(x: Any, i: Any) -> Any:
        piece = lax.dynamic_slice(x, (i, np.int32(0)), (2, 2))
        again = lax.dynamic_slice_in_dim(x, -2, 2, axis=1)
        return piece, again, lax.dynamic_update_slice(x, piece * 2, (i, i)), x[-3:][0]

    return called(run, floats(4, 4), np.int32(-1))


@program()
def gather_with_all_its_parameters() -> Call:
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0, 1)
    )
    batched = lax.GatherDimensionNumbers(
        offset_dims=(), collapsed_slice_dims=(1,), start_index_map=(1,),
        operand_batching_dims=(0,), start_indices_batching_dims=(0,),
    )  # fmt: skip

    def run(x: Any, i: Any) -> Any:
        return lax.gather(
            x, i, numbers, slice_sizes=(1, 2), mode="fill", fill_value=7, unique_indices=True
        ), lax.gather(x, i[:, :1], batched, slice_sizes=(1, 1), mode="promise_in_bounds")

    return called(run, floats(3, 4), integers(3, 2, modulus=5))


@program()
def scatters_with_combiners_and_batches() -> Call:
    def run(x: Any, i: Any, v: Any) -> Any:
        put = jax.vmap(lambda row, j, u: row.at[j].add(u, mode="drop"))(x, i, v)
        numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        return put, lax.scatter_mul(x[0], i[:, :1], v[:, 0], numbers, mode="clip")

    return called(run, floats(3, 4), integers(3, 2, modulus=5), floats(3, 2))


@program()
def sort_with_several_operands_and_keys() -> Call:
    def run(x: Any, y: Any, z: Any) -> Any:
        return lax.sort((x, y, z), dimension=1, num_keys=2, is_stable=False), lax.sort(
            x, dimension=0
        )

    return called(run, integers(3, 4, modulus=3), floats(3, 4), integers(3, 4))


@program()
def sort_as_numpy_has_it() -> Call:
    def run(x: Any) -> Any:
        return (
            jnp.sort(x, descending=True),
            jnp.argsort(x, axis=0),
            jnp.lexsort((x[0], x[1])),
            jnp.median(x),
        )

    return called(run, floats(3, 4))


@program()
def top_k_and_its_approximation() -> Call:
    def run(x: Any) -> Any:
        return lax.top_k(x, 2), lax.approx_max_k(x, 2), lax.approx_min_k(x, 2, recall_target=0.9)

    return called(run, floats(3, 6))


@program()
def unique_and_friends() -> Call:
    def run(x: Any) -> Any:
        values, counts = jnp.unique(x, size=4, return_counts=True, fill_value=-1)
        return (
            values,
            counts,
            jnp.bincount(x, length=5),
            jnp.searchsorted(values, x),
            jnp.nonzero(x, size=3),
        )

    return called(run, integers(7, modulus=5))


@program()
def reductions_of_all_sorts() -> Call:
    def run(x: Any) -> Any:
        pair = lax.reduce(
            (x, x * 2),
            (np.float32(0), np.float32(1)),
            lambda a, b: (a[0] + b[0], a[1] * b[1]),
            (1,),
        )
        return (
            pair,
            x.sum(0),
            x.prod(),
            x.max(1),
            x.min(),
            (x > 0).any(0),
            (x > 0).all(),
            jnp.ptp(x),
        )

    return called(run, floats(3, 4))


@program()
def reductions_of_integers_and_bits() -> Call:
    def run(x: Any) -> Any:
        return (
            lax.reduce_xor(x, (0,)), lax.reduce_and(x, (0,)), lax.reduce_or(x, (0, 1)), x.sum(), x.max(1),
            lax.reduce(x, np.int32(-5), lax.max, (0,)), lax.reduce(x, np.int32(1), lambda a, b: a * b + 1, (1,)),
        )  # fmt: skip

    return called(run, integers(3, 4))


@program()
def cumulative_operations() -> Call:
    def run(x: Any) -> Any:
        return (
            lax.cumsum(x, 1), lax.cumprod(x, 0, reverse=True), lax.cummax(x), lax.cummin(x, 1, reverse=True),
            lax.cumlogsumexp(x), jnp.cumsum(x), jnp.diff(x, axis=0),
        )  # fmt: skip

    return called(run, floats(3, 4))


@program()
def windows_and_pools() -> Call:
    def run(x: Any) -> Any:
        custom = lax.reduce_window(
            x, np.float32(1), lambda a, b: a * b + np.float32(0.5), (2, 2), (1, 1), "SAME"
        )
        pair = lax.reduce_window(
            (x, x), (np.float32(0), np.float32(0)), lambda a, b: (a[0] + b[0], lax.max(a[1], b[1])),
            (2, 1), (1, 1), "VALID",
        )  # fmt: skip
        return (
            lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), ((0, 0), (1, 1)), (1, 1), (1, 2)),
            lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME"),
            lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (1, 1), "VALID"), custom, pair,
        )  # fmt: skip

    return called(run, floats(4, 5))


@program()
def gradients_of_pools() -> Call:
    def pooled(x: Any) -> Any:
        maximum = lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "SAME")
        return (maximum**2).sum() + lax.reduce_window(
            x, 0.0, lax.add, (2, 2), (1, 2), "VALID"
        ).prod()

    return called(jax.grad(pooled), floats(4, 5))


@program()
def select_and_scatter_directly() -> Call:
    def run(x: Any) -> Any:
        return jax.jvp(jax.grad(lambda v: lax.reduce_window(
            v, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID").sum()), (x,), (x * 2,))  # fmt: skip

    return called(run, floats(4, 4))


@program()
def convolutions_of_all_sorts() -> Call:
    def run(x: Any, w: Any, grouped: Any) -> Any:
        numbers = lax.conv_dimension_numbers(x.shape, w.shape, ("NHWC", "HWIO", "NHWC"))
        return (
            lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers),
            lax.conv_general_dilated(x, w, (2, 1), ((1, 0), (0, 2)), (1, 2), (2, 1), numbers),
            lax.conv_general_dilated(x, grouped, (1, 1), "VALID", dimension_numbers=numbers,
                                     feature_group_count=2, precision=lax.Precision.HIGHEST),
            lax.conv_transpose(x, w, (2, 2), "SAME"),
            lax.conv(jnp.moveaxis(x, -1, 1), jnp.transpose(w, (3, 2, 0, 1)), (1, 1), "SAME"),
        )  # fmt: skip

    return called(run, floats(2, 5, 6, 4), floats(3, 3, 4, 2), floats(2, 2, 2, 4))


@program()
def gradients_of_convolutions() -> Call:
    def loss(x: Any, w: Any) -> Any:
        out = lax.conv_general_dilated(
            x, w, (2, 1), "SAME", (1, 1), (1, 2), ("NCHW", "OIHW", "NCHW"), feature_group_count=2
        )
        return (out**2).sum()

    return called(jax.grad(loss, argnums=(0, 1)), floats(1, 4, 5, 6), floats(4, 2, 3, 3))


@program(gradient=False)
def convolution_with_batch_groups_and_preferred_type() -> Call:
    def run(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (1,), "VALID", dimension_numbers=("NCH", "OIH", "NCH"), batch_group_count=2,
            preferred_element_type=np.int32,
        )  # fmt: skip

    return called(run, integers(4, 3, 6, dtype=np.int8), integers(2, 3, 2, dtype=np.int8))


@program()
def contractions_with_preferred_types() -> Call:
    def run(a: Any, b: Any) -> Any:
        return (
            lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=np.float32),
            jnp.matmul(a, b, preferred_element_type=jnp.float32), a @ b,
            jnp.einsum("ij,jk->ki", a, b), lax.dot(a, b, precision="highest"),
        )  # fmt: skip

    small = floats(3, 4).astype(ml_dtypes.bfloat16)
    return called(run, small, floats(4, 2).astype(ml_dtypes.bfloat16))


@program()
def contractions_with_precisions_and_algorithms() -> Call:
    def run(a: Any, b: Any) -> Any:
        pair = (lax.Precision.HIGH, lax.Precision.DEFAULT)
        with jax.default_matmul_precision("highest"):
            inside = a @ b
        algorithm = lax.DotAlgorithmPreset.F32_F32_F32
        return inside, lax.dot(a, b, precision=pair), lax.dot(a, b, precision=algorithm)

    return called(run, floats(3, 4), floats(4, 2))


@program()
def einsums_of_all_sorts() -> Call:
    def run(a: Any, b: Any) -> Any:
        return (
            jnp.einsum("bij,bjk->bik", a, b), jnp.einsum("bij,bjk->", a, b), jnp.einsum("bii->bi", a[:, :3, :3]),
            jnp.tensordot(a, b, axes=((0, 2), (0, 1))), jnp.einsum("...ij,...jk->...ki", a, b),
            jnp.einsum("bij,bjk,bkl->bil", a, b, b.transpose(0, 2, 1)), jnp.vecdot(a, a), jnp.outer(a[0], b[0]),
        )  # fmt: skip

    return called(run, floats(2, 3, 4), floats(2, 4, 5))


@program()
def integer_contractions() -> Call:
    def run(a: Any, b: Any) -> Any:
        return a @ b, lax.dot_general(
            a, b, (((1,), (0,)), ((), ())), preferred_element_type=np.int32
        )

    return called(run, integers(3, 4, dtype=np.int8), integers(4, 2, dtype=np.int8))


@program(gradient=False)
def ragged_contractions() -> Call:
    def run(a: Any, b: Any, sizes: Any) -> Any:
        return lax.ragged_dot(a, b, sizes), lax.ragged_dot(a, b, sizes, precision="highest")

    return called(run, floats(6, 3), floats(2, 3, 4), np.array([2, 4], np.int32))


@program(gradient=False, since=(0, 10))
def scaled_contractions() -> Call:
    def run(a: Any, b: Any) -> Any:
        return lax.scaled_dot(a, b, preferred_element_type=np.float32)

    return called(
        run, floats(4, 32).astype(ml_dtypes.bfloat16), floats(32, 4).astype(ml_dtypes.bfloat16)
    )


@program()
def fourier_transforms() -> Call:
    def run(x: Any) -> Any:
        z = jnp.fft.fft2(x)
        return (
            z,
            jnp.fft.irfft(jnp.fft.rfft(x), n=x.shape[1]),
            lax.fft(z, "IFFT", (3, 4)),
            jnp.fft.fftshift(z),
        )

    return called(run, floats(3, 4))


@program()
def shaping_of_all_sorts() -> Call:
    def run(x: Any) -> Any:
        return (
            x.reshape(4, 3), x.T, x.ravel(order="F"), jnp.squeeze(x[None]), lax.rev(x, (1,)), jnp.roll(x, 1, 0),
            lax.expand_dims(x, (0, 3)), jnp.broadcast_to(x, (2, 3, 4)), jnp.tile(x, (2, 1)), jnp.repeat(x, 2, 1),
            jnp.stack([x, x], 1), jnp.concatenate([x, x * 2, x]), jnp.split(x, 2, axis=1), jnp.flip(x),
            lax.pad(x, np.float32(0.5), ((1, 2, 1), (-1, 0, 0))), jnp.pad(x, 1, mode="reflect"), jnp.unstack(x), list(x),
            lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)), jnp.kron(x, x), jnp.swapaxes(x, 0, 1), jnp.rot90(x),
        )  # fmt: skip

    return called(run, floats(3, 4))


@program()
def iotas_of_all_dimensions() -> Call:
    def run(x: Any) -> Any:
        return (
            lax.broadcasted_iota(np.int32, (3, 4), 1), lax.iota(np.float32, 3), jnp.eye(3, 4, 1), jnp.arange(5),
            jnp.linspace(0, 1, 5), jnp.meshgrid(x, x), jnp.tri(3), jnp.tril(jnp.outer(x, x), -1), jnp.diag(x),
            jnp.indices((2, 3)), jnp.triu_indices(3),
        )  # fmt: skip

    return called(run, floats(3))


@program()
def selects_and_clamps() -> Call:
    def run(x: Any, i: Any) -> Any:
        return (
            lax.select_n(i, x, x * 2, x * 3), jnp.where(x > 0, x, 0), lax.clamp(np.float32(-0.5), x, np.float32(0.5)),
            jnp.clip(x, 0.0, None), lax.clamp(x - 1, x * 3, x + 1), jnp.select([x > 0.5, x > 0], [x, -x], 7),
            jnp.piecewise(x, [x < 0], [jnp.sin, jnp.cos]), jnp.nan_to_num(x),
        )  # fmt: skip

    return called(run, floats(4), integers(4, modulus=3))


@program()
def statistics_and_signal() -> Call:
    def run(x: Any) -> Any:
        return (
            jnp.quantile(x, 0.3), jnp.histogram(x, 4), jnp.convolve(x, x[:3]), jnp.interp(x, x, x * 2), jnp.cov(x),
            jax.scipy.signal.convolve2d(jnp.outer(x, x), jnp.ones((2, 2))), jnp.corrcoef(jnp.stack([x, x**2])),
            jnp.gradient(x), jnp.polyfit(x, x**2, 2), jnp.trapezoid(x),
        )  # fmt: skip

    return called(run, floats(6))


@program()
def neural_network_functions() -> Call:
    def run(x: Any) -> Any:
        nn = jax.nn
        return (
            nn.softmax(x), nn.log_softmax(x, axis=0), nn.gelu(x), nn.gelu(x, approximate=False), nn.silu(x),
            nn.relu(x), nn.relu6(x), nn.elu(x), nn.selu(x), nn.glu(x), nn.one_hot(x[0].astype(jnp.int32), 3),
            nn.logsumexp(x, axis=1, keepdims=True), nn.standardize(x), nn.softplus(x), nn.leaky_relu(x),
        )  # fmt: skip

    return called(run, floats(3, 4))


@program()
def attention_and_its_gradient() -> Call:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, is_causal=True).sum()

    shape = (1, 4, 2, 3)
    return called(
        jax.value_and_grad(loss, (0, 1, 2)), floats(*shape), floats(*shape) * 2, floats(*shape)
    )


@program()
def resizing_and_mapping_coordinates() -> Call:
    def run(x: Any) -> Any:
        found = jax.scipy.ndimage.map_coordinates(x, jnp.array([[0.5, 1.5], [1.0, 2.2]]), order=1)
        return jax.image.resize(x, (6, 6), "bilinear"), jax.image.resize(x, (2, 2), "cubic"), found

    return called(run, floats(4, 4))
