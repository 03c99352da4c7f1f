"""Functions of JAX's public API and of optax, called with arrays whose sizes have names.

The given sizes are powers of two, whose sums, products and quotients coincide.
"""

from __future__ import annotations

from collections.abc import Iterator

SIZES = "N=8, M=4, K=2, L=16, B=2"

_UNARY = """
abs angle arccos arcsin arctan ceil cos cosh degrees exp exp2 expm1 fabs floor imag isfinite isnan
log log10 log1p log2 logical_not negative positive radians real reciprocal rint sign sin sinh sqrt
square tan tanh trunc sort argsort cumsum cumprod ravel diagonal trace transpose flipud fliplr
rot90 squeeze atleast_3d nan_to_num zeros_like ones_like unwrap
"""
_REDUCTIONS = """
sum prod mean std var max min argmax argmin any all median ptp nansum nanmean count_nonzero
"""
_BINARY = """
add subtract multiply true_divide power maximum minimum arctan2 hypot fmod equal greater less
logical_and logaddexp copysign heaviside nextafter
"""
_NN = """
relu relu6 sigmoid softplus soft_sign silu swish log_sigmoid leaky_relu hard_sigmoid hard_silu
hard_tanh elu celu selu gelu glu softmax log_softmax logsumexp standardize
"""
_SPECIAL = "erf erfc erfinv expit gammaln digamma logit xlogy i0 i1 ndtr entr"
_FFT = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 fftn fftshift ifftshift"
_LOSSES = "l2_loss squared_error log_cosh huber_loss cosine_similarity hinge_loss"

_OTHERS = """
jnp.reshape(x, (-1,)) | x: f32[N, M]
jnp.reshape(x, (x.shape[0] * 2, -1)) | x: f32[N, M]
jnp.reshape(x, (x.shape[0], 2, -1)) | x: f32[N, M]
jnp.concatenate([x, y]) | x: f32[N, M]; y: f32[K, M]
jnp.concatenate([x, x], axis=1) | x: f32[N, M]
jnp.stack([x, x, x]) | x: f32[N, M]
jnp.vstack([x, y]) | x: f32[N, M]; y: f32[M]
jnp.hstack([x, y]) | x: f32[N, M]; y: f32[N, K]
jnp.dstack([x, x]) | x: f32[N, M]
jnp.column_stack([x, y]) | x: f32[N]; y: f32[N, M]
jnp.tile(x, (2, 3)) | x: f32[N, M]
jnp.tile(x, (x.shape[1], 1)) | x: f32[N, M]
jnp.repeat(x, 3, axis=0) | x: f32[N, M]
jnp.repeat(x, 2) | x: f32[N, M]
jnp.pad(x, 1) | x: f32[N, M]
jnp.pad(x, ((0, 3), (2, 0))) | x: f32[N, M]
jnp.split(x, 2) | x: f32[N, M]
jnp.array_split(x, 3) | x: f32[N, M]
jnp.array_split(x, 3, axis=1) | x: f32[N, M]
jnp.diff(x) | x: f32[N, M]
jnp.diff(x, n=2, axis=0) | x: f32[N, M]
jnp.ediff1d(x) | x: f32[N]
jnp.gradient(x) | x: f32[N, M]
jnp.convolve(x, k) | x: f32[L]; k: f32[M]
jnp.convolve(x, k, mode="same") | x: f32[L]; k: f32[M]
jnp.convolve(x, k, mode="valid") | x: f32[L]; k: f32[M]
jnp.correlate(x, k, mode="full") | x: f32[L]; k: f32[M]
jnp.outer(x, y) | x: f32[N]; y: f32[M]
jnp.inner(x, y) | x: f32[N, K]; y: f32[M, K]
jnp.kron(x, y) | x: f32[N, M]; y: f32[K, B]
jnp.dot(x, y) | x: f32[N, M]; y: f32[M, K]
jnp.matmul(x, y) | x: f32[B, N, M]; y: f32[B, M, K]
jnp.tensordot(x, y, axes=1) | x: f32[N, M]; y: f32[M, K]
jnp.tensordot(x, y, axes=0) | x: f32[N]; y: f32[M, K]
jnp.vdot(x, y) | x: f32[N]; y: f32[N]
jnp.einsum("bhqd,bhkd->bhqk", x, y) | x: f32[B, M, N, K]; y: f32[B, M, L, K]
jnp.einsum("ij,jk->ki", x, y) | x: f32[N, M]; y: f32[M, K]
jnp.cross(x, y) | x: f32[N, 3]; y: f32[N, 3]
jnp.meshgrid(x, y) | x: f32[N]; y: f32[M]
jnp.meshgrid(x, y, indexing="ij", sparse=True) | x: f32[N]; y: f32[M]
jnp.indices(x.shape) | x: f32[N, M]
jnp.arange(x.shape[0]) | x: f32[N, M]
jnp.arange(0, x.shape[0], 2) | x: f32[N, M]
jnp.arange(x.shape[0] + x.shape[1]) | x: f32[N, M]
jnp.linspace(0, 1, x.shape[0] + 1) | x: f32[N]
jnp.eye(x.shape[0]) | x: f32[N, M]
jnp.eye(x.shape[0], x.shape[1] + 2) | x: f32[N, M]
jnp.tri(x.shape[0]) | x: f32[N, M]
jnp.tril(x) | x: f32[N, M]
jnp.triu(x, 1) | x: f32[N, M]
jnp.tril_indices(x.shape[0]) | x: f32[N]
jnp.vander(x) | x: f32[N]
jnp.diag(x) | x: f32[N]
jnp.diag(x, 2) | x: f32[N]
jnp.diag(x) | x: f32[N, N]
jnp.diag(x, 1) | x: f32[L, L]
jnp.diagflat(x) | x: f32[N, M]
jnp.fill_diagonal(x, 0.0, inplace=False) | x: f32[N, N]
jnp.expand_dims(x, (0, 2)) | x: f32[N, M]
jnp.swapaxes(x, 0, 1) | x: f32[N, M]
jnp.moveaxis(x, 0, -1) | x: f32[B, N, M]
jnp.rollaxis(x, 2) | x: f32[B, N, M]
jnp.roll(x, 1) | x: f32[N, M]
jnp.flip(x, 0) | x: f32[N, M]
jnp.broadcast_to(x, (3, *x.shape)) | x: f32[N, M]
jnp.broadcast_arrays(x, y) | x: f32[N, 1]; y: f32[M]
jnp.where(x > 0, x, y) | x: f32[N, M]; y: f32[M]
jnp.take(x, i, axis=0) | x: f32[N, M]; i: i32[K]
jnp.take_along_axis(x, i, axis=1) | x: f32[N, M]; i: i32[N, K]
jnp.searchsorted(x, y) | x: f32[N]; y: f32[M]
jnp.digitize(x, y) | x: f32[N]; y: f32[M]
jnp.bincount(i, length=x.shape[0]) | i: i32[N]; x: f32[M]
jnp.histogram(x, bins=10) | x: f32[N]
jnp.histogram(x, bins=y) | x: f32[N]; y: f32[M]
jnp.interp(x, y, z) | x: f32[N]; y: f32[M]; z: f32[M]
jnp.percentile(x, y) | x: f32[N]; y: f32[M]
jnp.quantile(x, 0.5, axis=0) | x: f32[N, M]
jnp.cov(x) | x: f32[N, M]
jnp.corrcoef(x) | x: f32[N, M]
jnp.polyval(p, x) | p: f32[M]; x: f32[N]
jnp.polymul(p, q) | p: f32[M]; q: f32[N]
jnp.polyadd(p, q) | p: f32[M]; q: f32[N]
jnp.polyder(p) | p: f32[N]
jnp.polyint(p) | p: f32[N]
jnp.roots(p, strip_zeros=False) | p: f32[N]
jnp.poly(p) | p: f32[N]
jnp.apply_along_axis(jnp.sum, 0, x) | x: f32[N, M]
jnp.apply_along_axis(lambda r: r[1:], 1, x) | x: f32[N, M]
jnp.unique(x, size=5) | x: f32[N]
jnp.nonzero(x, size=x.shape[0]) | x: f32[N, M]
jnp.argwhere(x, size=3) | x: f32[N, M]
jnp.delete(x, 0, axis=0) | x: f32[N, M]
jnp.insert(x, 1, 0.0, axis=0) | x: f32[N, M]
jnp.append(x, y) | x: f32[N]; y: f32[M]
jnp.trim_zeros(jnp.ones(3)) + x[0] | x: f32[N]
jnp.block([[x, x], [x, x]]) | x: f32[N, M]
jnp.ix_(x, y) | x: i32[N]; y: i32[M]
jnp.packbits(x, axis=0) | x: u8[N, M]
jnp.unpackbits(x, axis=1) | x: u8[N, M]
jnp.resize(x, (3, 5)) | x: f32[N, M]
jnp.partition(x, 2) | x: f32[N]
jnp.lexsort((x, y)) | x: f32[N]; y: f32[N]
jnp.trapezoid(x) | x: f32[N, M]
jnp.nancumsum(x, axis=0) | x: f32[N, M]
x[1:] | x: f32[N, M]
x[:-1, 1:] | x: f32[N, M]
x[::2] | x: f32[N, M]
x[1::2, ::3] | x: f32[L, N]
x[::-1] | x: f32[N, M]
x[:, None] | x: f32[N, M]
x[..., 0] | x: f32[B, N, M]
x[: x.shape[0] // 2] | x: f32[N, M]
x[x.shape[0] // 2 :] | x: f32[N, M]
x[: x.shape[1]] | x: f32[L, M]
x[:3] | x: f32[N, M]
x[:5] | x: f32[N, M]
x[-3:] | x: f32[N, M]
x[i] | x: f32[N, M]; i: i32[K]
x[i[:, None], j] | x: f32[N, M]; i: i32[K]; j: i32[B]
x.at[i].set(0.0) | x: f32[N, M]; i: i32[K]
x.at[i].add(y) | x: f32[N, M]; i: i32[K]; y: f32[K, M]
jnp.linalg.norm(x, axis=0) | x: f32[N, M]
jnp.linalg.inv(x) | x: f32[N, N]
jnp.linalg.det(x) | x: f32[B, N, N]
jnp.linalg.solve(x, y) | x: f32[N, N]; y: f32[N, M]
jnp.linalg.qr(x) | x: f32[L, M]
jnp.linalg.qr(x, mode="complete") | x: f32[L, M]
jnp.linalg.qr(x) | x: f32[M, L]
jnp.linalg.svd(x) | x: f32[N, M]
jnp.linalg.svd(x, full_matrices=False) | x: f32[N, M]
jnp.linalg.svd(x, full_matrices=False) | x: f32[M, N]
jnp.linalg.eigh(x) | x: f32[N, N]
jnp.linalg.cholesky(x) | x: f32[N, N]
jnp.linalg.slogdet(x) | x: f32[N, N]
jnp.linalg.lstsq(x, y) | x: f32[N, M]; y: f32[N, K]
jnp.linalg.pinv(x) | x: f32[N, M]
jnp.linalg.matrix_power(x, 3) | x: f32[N, N]
jnp.linalg.multi_dot([x, y, z]) | x: f32[N, M]; y: f32[M, L]; z: f32[L, K]
jnp.linalg.matrix_rank(x) | x: f32[N, M]
jax.scipy.linalg.lu(x) | x: f32[L, M]
jax.scipy.linalg.lu(x) | x: f32[M, L]
jax.scipy.linalg.expm(x) | x: f32[N, N]
jax.scipy.linalg.block_diag(x, y) | x: f32[N, M]; y: f32[K, L]
jax.scipy.linalg.toeplitz(x, y) | x: f32[N]; y: f32[M]
jax.scipy.linalg.hilbert(x.shape[0]) | x: f32[N]
jax.scipy.linalg.solve_triangular(x, y) | x: f32[N, N]; y: f32[N, M]
jax.scipy.linalg.cho_factor(x)[0] | x: f32[N, N]
jax.scipy.signal.convolve(x, k) | x: f32[L, N]; k: f32[M, K]
jax.scipy.signal.convolve2d(x, k, mode="valid") | x: f32[L, N]; k: f32[M, K]
jax.scipy.signal.fftconvolve(x, k) | x: f32[L]; k: f32[M]
jax.scipy.signal.detrend(x) | x: f32[N, M]
jax.scipy.signal.stft(x, nperseg=8)[2] | x: f32[L]
jax.scipy.signal.welch(x, nperseg=8)[1] | x: f32[L]
jax.scipy.signal.hilbert(x) | x: f32[L]
jax.scipy.stats.norm.logpdf(x) | x: f32[N, M]
jax.scipy.stats.rankdata(x) | x: f32[N]
jax.scipy.stats.gaussian_kde(x).evaluate(y) | x: f32[N]; y: f32[M]
jax.scipy.special.logsumexp(x, axis=1, keepdims=True) | x: f32[N, M]
jax.scipy.special.sph_harm_y(i, i, x, x, n_max=4) | i: i32[N]; x: f32[N]
jax.scipy.ndimage.map_coordinates(x, [y, y], order=1) | x: f32[N, M]; y: f32[K]
jax.scipy.fft.dct(x) | x: f32[N, M]
jax.scipy.integrate.trapezoid(x, axis=0) | x: f32[N, M]
jax.scipy.cluster.vq.vq(x, y) | x: f32[N, M]; y: f32[K, M]
jax.nn.one_hot(i, x.shape[1]) | i: i32[N]; x: f32[N, M]
jax.nn.one_hot(i, 10) | i: i32[N, M]
jax.nn.dot_product_attention(q, k, k) | q: f32[B, N, M, K]; k: f32[B, L, M, K]
jax.nn.dot_product_attention(q, k, k) | q: f32[B, N, M, K]; k: f32[B, L, B, K]
jax.nn.glu(x, axis=0) | x: f32[N, M]
jax.lax.conv(x, k, (1, 1), "SAME") | x: f32[B, M, L, L]; k: f32[N, M, 3, 3]
jax.lax.conv(x, k, (1, 1), "VALID") | x: f32[B, M, L, L]; k: f32[N, M, 3, 3]
jax.lax.conv(x, k, (2, 2), "SAME") | x: f32[B, M, L, L]; k: f32[N, M, 3, 3]
jax.lax.conv(x, k, (2, 2), "VALID") | x: f32[B, M, L, L]; k: f32[N, M, 3, 3]
jax.lax.conv_transpose(x, k, (2,), "SAME", dimension_numbers=("NHC", "HIO", "NHC")) | x: f32[B, L, M]; k: f32[3, M, N]
jax.lax.conv_general_dilated_patches(x, (3, 3), (1, 1), "VALID") | x: f32[B, M, L, L]
jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2), (2, 2), "VALID") | x: f32[L, N]
jax.lax.reduce_window(x, 0.0, jax.lax.add, (3, 3), (1, 1), "SAME") | x: f32[L, N]
jax.lax.top_k(x, 2) | x: f32[N, M]
jax.lax.top_k(x, x.shape[1] // 2) | x: f32[N, L]
jax.lax.scan(lambda c, r: (c + r, c), x[0], x) | x: f32[N, M]
jax.lax.scan(lambda c, r: (c, jnp.outer(r, r)), x[0], x) | x: f32[N, M]
jax.lax.map(lambda r: r[:2], x) | x: f32[N, M]
jax.lax.fori_loop(0, 3, lambda i, c: c * 2, x) | x: f32[N, M]
jax.lax.while_loop(lambda c: jnp.sum(c) < 9, lambda c: c + 1, x) | x: f32[N, M]
jax.lax.cond(x[0, 0] > 0, lambda v: v, lambda v: -v, x) | x: f32[N, M]
jax.lax.associative_scan(jnp.add, x) | x: f32[N, M]
jax.lax.dynamic_slice(x, (0, 0), (2, 2)) | x: f32[N, M]
jax.lax.dynamic_update_slice(x, y, (0, 0)) | x: f32[N, M]; y: f32[K, B]
jax.lax.pad(x, 0.0, ((1, 1, 1), (0, 0, 0))) | x: f32[N, M]
jax.lax.collapse(x, 0, 2) | x: f32[B, N, M]
jax.lax.broadcast(x, (3,)) | x: f32[N, M]
jax.lax.cumlogsumexp(x) | x: f32[N, M]
jax.lax.sort_key_val(x, y) | x: f32[N]; y: f32[N]
jax.vmap(lambda r: jnp.outer(r, r))(x) | x: f32[N, M]
jax.vmap(jnp.dot, in_axes=(0, None))(x, y) | x: f32[N, M]; y: f32[M]
jax.grad(lambda v: jnp.sum(v**2))(x) | x: f32[N, M]
jax.jacobian(lambda v: v @ v.T)(x) | x: f32[N, M]
jax.hessian(lambda v: jnp.sum(v**3))(x) | x: f32[N]
jax.jvp(jnp.sin, (x,), (x,)) | x: f32[N, M]
jax.checkpoint(lambda v: v @ v.T)(x) | x: f32[N, M]
jax.random.normal(key, x.shape) | key: key<fry>[]; x: f32[N, M]
jax.random.split(key, x.shape[0]) | key: key<fry>[]; x: f32[N, M]
jax.random.permutation(key, x) | key: key<fry>[]; x: f32[N, M]
jax.random.choice(key, x, (3,)) | key: key<fry>[]; x: f32[N]
jax.random.categorical(key, x) | key: key<fry>[]; x: f32[N, M]
jax.random.multivariate_normal(key, x, y) | key: key<fry>[]; x: f32[N]; y: f32[N, N]
jax.random.dirichlet(key, x) | key: key<fry>[]; x: f32[N]
jax.image.resize(x, (x.shape[0] * 2, x.shape[1] // 2, 3), "bilinear") | x: f32[N, L, 3]
jax.image.scale_and_translate(x, (7, 9), (0, 1), jnp.ones(2), jnp.zeros(2), "linear") | x: f32[N, L]
jax.ops.segment_sum(x, i, num_segments=5) | x: f32[N, M]; i: i32[N]
jax.ops.segment_max(x, i, num_segments=x.shape[1]) | x: f32[N, M]; i: i32[N]
jax.tree.map(lambda v: v[1:], {"a": x, "b": y}) | x: f32[N, M]; y: f32[K]
jax.flatten_util.ravel_pytree({"a": x, "b": y})[0] | x: f32[N, M]; y: f32[K]
jax.eval_shape(lambda v: v @ v.T, x) | x: f32[N, M]
x.reshape(x.shape[0], 4, -1) | x: f32[N, L]
x.reshape(x.shape[0] // x.shape[2], x.shape[2], -1) | x: f32[N, M, K]
x.reshape(-1, x.shape[1] // 4, 4) | x: f32[N, L]
jnp.ones((x.shape[0] + 1, x.shape[1] - 1)) | x: f32[N, M]
jnp.ones((x.shape[0] * x.shape[1], 2 * x.shape[0] - 1)) | x: f32[N, M]
jnp.ones((min(x.shape), max(x.shape))) | x: f32[N, M]
jnp.ones((x.shape[0] % 3 + 1, x.shape[0] ** 2)) | x: f32[N, M]
jnp.ones((min(x.shape[0], 8), 3)) | x: f32[N, M]
jnp.ones((-(-x.shape[0] // x.shape[1]), x.shape[0] // x.shape[1] + 1)) | x: f32[N, M]
jnp.ones((1 << (x.shape[0] - 1).bit_length(),)) | x: f32[N, M]
optax.softmax_cross_entropy(x, y) | x: f32[N, M]; y: f32[N, M]
optax.softmax_cross_entropy_with_integer_labels(x, i) | x: f32[N, M]; i: i32[N]
optax.ctc_loss(x, y, i, y) | x: f32[B, L, N]; y: f32[B, L]; i: i32[B, M]
optax.adam(0.1).init(x) | x: f32[N, M]
optax.adafactor(0.1).init(x) | x: f32[N, M]
optax.smooth_labels(x, 0.1) | x: f32[N, M]
optax.kl_divergence(x, y) | x: f32[N, M]; y: f32[N, M]
optax.ntxent(x, i) | x: f32[N, M]; i: i32[N]
optax.global_norm([x, y]) | x: f32[N, M]; y: f32[K]
"""


def calls() -> Iterator[tuple[str, str]]:
    """Yield calls with their example inputs."""
    one, two = "x: f32[N, M]", "x: f32[N, M]; y: f32[M]"
    for name in _UNARY.split():
        yield f"jnp.{name}(x)", one
    for name in _REDUCTIONS.split():
        yield f"jnp.{name}(x, axis=0)", one
        yield f"jnp.{name}(x, axis=1, keepdims=True)", one
    for name in _BINARY.split():
        yield f"jnp.{name}(x, y)", two
    for name in _NN.split():
        yield f"jax.nn.{name}(x)", one
    for name in _SPECIAL.split():
        yield f"jax.scipy.special.{name}({'x, x' if name == 'xlogy' else 'x'})", one
    for name in _FFT.split():
        yield f"jnp.fft.{name}(x)", one
    for name in _LOSSES.split():
        yield f"optax.{name}(x, y)", "x: f32[N, M]; y: f32[N, M]"
    for line in _OTHERS.strip().splitlines():
        call, _, inputs = line.partition(" | ")
        yield call, inputs


def module(every: int = 1) -> str:
    """Return a module with a function for each call, or for every n-th one."""
    parts = ["import jax\nimport jax.flatten_util\nimport jax.numpy as jnp\nimport optax\n"]
    for number, (call, inputs) in enumerate(calls()):
        if number % every:
            continue
        names = [line.partition(":")[0] for line in inputs.split("; ")]
        lines = [f"        {line}" for line in inputs.split("; ")]
        used = [size for size in SIZES.split(", ") if size[0] in inputs.replace("key", "")]
        parts.append(
            f"def call_{number}({', '.join(names)}):\n"
            f'    """\n    Example inputs:\n' + "\n".join(lines) + "\n"
            f"        where {', '.join(used)}\n"
            f'    """\n    result = {call}\n    return result\n'
        )
    return "\n\n".join(parts)
