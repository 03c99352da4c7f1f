"""Functions that people write and that have an inverse, and functions that have none.

They were chosen for what they are used for, before it was known which of them jaxsight inverts.
`python -m tests.jaxsight_source.invertible` inverts them all and prints a table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from jaxsight import NotInvertible, inverse

Tree: TypeAlias = Any
"""A pytree of arrays: what these functions take and return."""
Floats: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


# Arithmetic at import is NumPy's: JAX would compile each operation for everyone who imports this.
def _normal(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


_VECTOR = _normal(8)
VECTOR = jnp.asarray(_VECTOR)
_WEIGHTS = jnp.asarray(_normal(3, 4, 4, seed=1) * np.float32(0.3))
_MATRIX = jnp.asarray(np.eye(4, dtype=np.float32) * 2 + _normal(4, 4, seed=2) * np.float32(0.3))
_MEAN = jnp.asarray(_normal(4, seed=3))
_SCALE = jnp.asarray(np.abs(_normal(4, seed=4)) + np.float32(0.5))
_MESH = Mesh(np.array(jax.devices()[:1]), ("data",))


def _network(x: Tree) -> Tree:
    """A small multilayer perceptron, with two results of the size of `x`."""
    hidden = jax.nn.gelu(jnp.tanh(x @ _WEIGHTS[0, : x.shape[-1]]) @ _WEIGHTS[1])
    out = hidden @ _WEIGHTS[2]
    return out[..., : x.shape[-1]], jnp.tanh(out[..., -x.shape[-1] :])


def squash(x: Tree) -> Tree:
    return jnp.exp(jnp.tanh(x))


def standardize(x: Tree) -> Tree:
    return (x - _MEAN) / _SCALE


def to_interval(x: Tree) -> Tree:
    low, high = -2.0, 5.0
    return low + (high - low) * jax.nn.sigmoid(x)


def box_cox(x: Tree) -> Tree:
    power = 0.3
    return (x**power - 1) / power


def ordered(x: Tree) -> Tree:
    """Stan's transform of a vector to one in ascending order."""
    return jnp.concatenate([x[:1], x[:1] + jnp.cumsum(jnp.exp(x[1:]))])


def stick_breaking(x: Tree) -> Tree:
    """NumPyro's transform of a vector to one that is positive and adds up to 1."""
    x = x - jnp.log(x.shape[-1] - jnp.arange(x.shape[-1]))
    z = jax.nn.sigmoid(x)
    left = jnp.cumprod(1 - z, axis=-1)
    return jnp.pad(z, (0, 1), constant_values=1.0) * jnp.pad(left, (1, 0), constant_values=1.0)


def real_nvp(x: Tree) -> Tree:
    """The masked coupling layer of the Real NVP paper (equation 9)."""
    mask = jnp.array([1.0, 0.0, 1.0, 0.0])
    for b in (mask, 1 - mask):
        shift, scale = _network(b * x)
        x = b * x + (1 - b) * (x * jnp.exp(scale) + shift)
    return x


def split_coupling(x: Tree) -> Tree:
    for order in (np.array([3, 1, 0, 2]), np.array([1, 2, 3, 0])):
        a, b = jnp.split(x, 2, axis=-1)
        shift, scale = _network(a)
        x = jnp.concatenate([a, b * jnp.exp(scale) + shift], axis=-1)[..., order]
    return x


def coupling_in_place(x: Tree) -> Tree:
    shift, scale = _network(x[::2])
    x = x.at[1::2].set(x[1::2] * jnp.exp(scale) + shift)
    return x.at[jnp.array([0, 2])].add(jnp.sin(x[1::2]))


def masked_coupling(x: Tree) -> Tree:
    """A coupling layer with `jnp.where` and a boolean mask, as Distrax writes it."""
    mask = jnp.arange(x.shape[-1]) % 2 == 0
    shift, scale = _network(jnp.where(mask, x, 0.0))
    return jnp.where(mask, x, x * jnp.exp(scale) + shift)


def glow(image: Tree) -> Tree:
    """Squeeze, activation norm and invertible 1×1 convolution of Glow."""
    h, w, c = image.shape
    x = image.reshape(h // 2, 2, w // 2, 2, c).transpose(0, 2, 1, 3, 4).reshape(h // 2, w // 2, 4)
    x = (x + _MEAN) * jnp.exp(_WEIGHTS[0, 0])
    return jnp.einsum("hwc,cd->hwd", x, _MATRIX)


def autoregressive(noise: Tree) -> Tree:
    def step(carry: Tree, z: Tree) -> Tree:
        x = z * jnp.exp(jnp.tanh(carry)) + 0.5 * carry
        return 0.9 * carry + x, x

    return lax.scan(step, 0.0, noise)[1]


def reversible_network(x: Tree) -> Tree:
    """RevNet's blocks, with the layers in a scan."""

    def block(state: Tree, weights: Tree) -> Tree:
        a, b = state
        a = a + jnp.tanh(b @ weights)
        b = b + jax.nn.relu(a @ weights.T)
        return (a, b), None

    return jnp.concatenate(lax.scan(block, tuple(jnp.split(x, 2)), _WEIGHTS)[0])


def leapfrog(position: Tree, momentum: Tree) -> Tree:
    force = jax.grad(lambda q: jnp.sum(jnp.cos(q)) + 0.5 * jnp.sum(q**2))

    def step(_: Tree, state: Tree) -> Tree:
        q, p = state
        p = p - 0.05 * force(q)
        q = q + 0.1 * p
        return q, p - 0.05 * force(q)

    return lax.fori_loop(0, 10, step, (position, momentum))


def adam(params: Tree, mean: Tree, square: Tree, count: Tree) -> Tree:
    """One step of Adam for a known gradient."""
    gradient = _MEAN
    count = count + 1
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    corrected = mean / (1 - 0.9**count), square / (1 - 0.999**count)
    return params - 1e-2 * corrected[0] / (jnp.sqrt(corrected[1]) + 1e-8), mean, square, count


def rotary(x: Tree) -> Tree:
    """Rotary position embedding of a sequence of vectors."""
    length, size = x.shape
    angles = jnp.arange(length)[:, None] / 100.0 ** (jnp.arange(size // 2) / (size // 2))
    a, b = jnp.split(x, 2, axis=-1)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def householder(x: Tree) -> Tree:
    v = _MEAN
    return x - 2 * v * jnp.dot(v, x) / jnp.dot(v, v)


def givens(x: Tree) -> Tree:
    """Plane rotations, one after the other, of two rows each."""
    for i, j, angle in ((0, 1, 0.3), (1, 3, -1.1), (0, 2, 2.0)):
        c, s = np.cos(angle), np.sin(angle)
        x = x.at[i].set(c * x[i] - s * x[j]).at[j].set(s * x[i] + c * x[j])
    return x


def haar(x: Tree) -> Tree:
    details = []
    while x.shape[0] > 1:
        even, odd = x[::2], x[1::2]
        details.append((even - odd) / np.sqrt(2))
        x = (even + odd) / np.sqrt(2)
    return jnp.concatenate([x, *reversed(details)])


def cosine_transform(x: Tree) -> Tree:
    return jax.scipy.fft.dct(x, norm="ortho")


def circular_convolution(x: Tree) -> Tree:
    kernel = jnp.array([3.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.25])
    return jnp.fft.ifft(jnp.fft.fft(x) * jnp.fft.fft(kernel)).real


def to_cartesian(radius: Tree, angle: Tree) -> Tree:
    return radius * jnp.cos(angle), radius * jnp.sin(angle)


def ranked(x: Tree) -> Tree:
    order = jnp.argsort(x)
    return x[order], order


def to_ycbcr(rgb: Tree) -> Tree:
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    y = 0.299 * r + 0.587 * g + 0.114 * b
    return jnp.stack([y, 0.5 + 0.564 * (b - y), 0.5 + 0.713 * (r - y)], axis=-1)


def to_srgb(linear: Tree) -> Tree:
    curve = 1.055 * jnp.maximum(linear, 0.0031308) ** (1 / 2.4) - 0.055
    return jnp.where(linear <= 0.0031308, 12.92 * linear, curve)


def leaky_layers(x: Tree) -> Tree:
    for bias in (_MEAN, _SCALE):
        x = jax.nn.leaky_relu(x @ _MATRIX + bias)
    return x


def mixed_bits(x: Tree) -> Tree:
    """The finalizer of MurmurHash3."""
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def cholesky_factor(x: Tree) -> Tree:
    """A lower triangular matrix with a positive diagonal from a vector, as TFP's FillScaleTriL."""
    size = 4
    lower = jnp.zeros((size, size)).at[jnp.tril_indices(size)].set(x)
    return jnp.where(jnp.eye(size, dtype=bool), jax.nn.softplus(lower), lower)


def deltas(x: Tree) -> Tree:
    return jnp.concatenate([x[:1], jnp.diff(x)])


def whitened(x: Tree) -> Tree:
    """Correlated variables solved for independent ones, by two linear solves."""
    covariance = _MATRIX @ _MATRIX.T
    x = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(covariance), x - _MEAN, lower=True)
    return jnp.linalg.solve(_MATRIX, x)


def sharded(x: Tree) -> Tree:
    layer = lambda x, w: jnp.tanh(x @ w)
    spec = PartitionSpec("data")
    mapped = jax.shard_map(layer, mesh=_MESH, in_specs=(spec, PartitionSpec()), out_specs=spec)
    return mapped(x, _MATRIX / 4)


def counted_loop(x: Tree) -> Tree:
    def body(state: Tree) -> Tree:
        step, x = state
        return step + 1, jnp.sinh(x) * 0.5 + step

    return lax.while_loop(lambda state: state[0] < 4, body, (0, x))[1]


def in_a_ref(x: Tree) -> Tree:
    """A buffer that is written in place."""
    buffer = jax.new_ref(x)
    buffer[1:] = buffer[1:] * 2.0
    buffer[...] = jnp.arcsinh(buffer[...])
    return jax.freeze(buffer)


INVERTIBLE: Mapping[Callable[..., Tree], tuple[np.ndarray, ...]] = {
    squash: (_VECTOR,),
    standardize: (_VECTOR[:4],),
    to_interval: (_VECTOR,),
    box_cox: (np.abs(_VECTOR),),
    ordered: (_VECTOR,),
    stick_breaking: (_VECTOR,),
    real_nvp: (_VECTOR[:4],),
    split_coupling: (_VECTOR[:4],),
    coupling_in_place: (_VECTOR[:4],),
    masked_coupling: (_VECTOR[:4],),
    glow: (_normal(4, 6, 1),),
    autoregressive: (_VECTOR,),
    reversible_network: (_VECTOR,),
    leapfrog: (_VECTOR[:4], _VECTOR[4:]),
    adam: (_VECTOR[:4], _VECTOR[4:], _VECTOR[:4] ** 2, np.int32(3)),
    rotary: (_normal(5, 6),),
    householder: (_VECTOR[:4],),
    givens: (_normal(4, 3),),
    haar: (_VECTOR,),
    cosine_transform: (_VECTOR,),
    circular_convolution: (_VECTOR,),
    to_cartesian: (np.abs(_VECTOR), _VECTOR),
    ranked: (_VECTOR,),
    to_ycbcr: (np.abs(_normal(2, 2, 3)),),
    to_srgb: (np.array([0.0, 0.001, 0.003, 0.2, 0.9], np.float32),),
    leaky_layers: (_VECTOR[:4],),
    mixed_bits: (np.array([0, 1, 12345, 0xFFFFFFFF, 0x80000001], np.uint32),),
    cholesky_factor: (_normal(10),),
    deltas: (_VECTOR,),
    whitened: (_VECTOR[:4],),
    sharded: (_normal(4, 4),),
    counted_loop: (_VECTOR * 0.1,),
    in_a_ref: (_VECTOR,),
}
"""Functions with an inverse, and arguments to check it with."""


def total(x: Tree) -> Tree:
    return jnp.sum(x)


def magnitude(x: Tree) -> Tree:
    return jnp.abs(x)


def rectified(x: Tree) -> Tree:
    return jax.nn.relu(x)


def probabilities(x: Tree) -> Tree:
    return jax.nn.softmax(x)


def in_order(x: Tree) -> Tree:
    return jnp.sort(x)


def layer_norm(x: Tree) -> Tree:
    return (x - x.mean()) / jnp.sqrt(x.var() + 1e-5)


def centered(x: Tree) -> Tree:
    return x - x.mean()


def quantized(x: Tree) -> Tree:
    return jnp.round(x * 16) / 16


def projected(x: Tree) -> Tree:
    return x[:4] @ _MATRIX[:, :2], x[4:]


def dropped(x: Tree) -> Tree:
    return x * (jnp.arange(8) % 3 > 0)


def clipped(x: Tree) -> Tree:
    return jnp.clip(x, -1.0, 1.0)


def shared_total(x: Tree) -> Tree:
    spec = PartitionSpec("data")
    total = lambda x: lax.psum(x, "data")
    return jax.shard_map(total, mesh=_MESH, in_specs=spec, out_specs=PartitionSpec())(x)


def until_small(x: Tree) -> Tree:
    return lax.while_loop(lambda x: jnp.max(x) > 0.1, lambda x: x / 2, x)


def nearest(x: Tree) -> Tree:
    return jax.nn.one_hot(jnp.argmax(x), 8)


NOT_INVERTIBLE: Mapping[Callable[..., Tree], str] = {
    total: "reduce_sum adds elements up",
    magnitude: "abs maps x and -x to the same result",
    rectified: "discards the smaller of its operands",
    probabilities: "by the sum of its operand is the same for operands that differ by a factor",
    in_order: "forgets the order",
    layer_norm: "",
    centered: "a linear map of rank 7 from 8 elements",
    quantized: "rounds, so an interval",
    projected: "",
    dropped: "mul multiplies by 0",
    clipped: "discards",
    shared_total: "shard_map has no inverse",
    until_small: "a number of iterations that its results do not tell",
    nearest: "",
}
"""Functions of `VECTOR` without an inverse, and a part of the reason that they must be given."""

REFUSED = (
    stick_breaking,
    real_nvp,
    coupling_in_place,
    masked_coupling,
    to_cartesian,
    ranked,
    to_srgb,
    leaky_layers,
    mixed_bits,
    cholesky_factor,
    sharded,
    counted_loop,
)
"""Functions of `INVERTIBLE` that jaxsight does not invert, and says so."""


def round_trip(function: Callable[..., Tree]) -> float:
    """Return the largest error of the arguments and results after a trip both ways.

    It is relative to the largest of them.
    """
    arguments = tuple(map(jnp.asarray, INVERTIBLE[function]))
    results = function(*arguments)
    undone = jax.jit(inverse(function, *arguments))
    back = undone(results)
    again = function(back) if len(arguments) == 1 else function(*back)
    return max(
        _error(back, arguments[0] if len(arguments) == 1 else arguments), _error(again, results)
    )


def _error(found: Tree, expected: Tree) -> float:
    """Return the largest difference of two pytrees relative to the largest number; NaN counts."""
    worst = 0.0
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if one.dtype != other.dtype or one.shape != other.shape:
            return float("inf")
        a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
        error = np.max(np.abs(a - b)) / max(1.0, float(np.max(np.abs(b))))
        worst = max(worst, float(error) if np.isfinite(error) else float("inf"))
    return worst


def main() -> int:
    inverted = 0
    for function in INVERTIBLE:
        try:
            outcome = f"inverted, error {round_trip(function):.0e}"
            inverted += 1
        except NotInvertible as refusal:
            outcome = f"refused: {refusal.primitive or ''} {refusal.reason}"
        print(f"{function.__name__:22}{outcome}")
    print(f"{inverted} of {len(INVERTIBLE)} functions with an inverse are inverted\n")
    refused = 0
    for function in NOT_INVERTIBLE:
        try:
            inverse(function, VECTOR)(function(VECTOR))
            outcome = "inverted, wrongly"
        except NotInvertible as refusal:
            outcome = f"refused: {refusal.primitive or ''} {refusal.reason}"
            refused += 1
        print(f"{function.__name__:22}{outcome}")
    print(f"{refused} of {len(NOT_INVERTIBLE)} functions without an inverse are refused")
    return 0 if refused == len(NOT_INVERTIBLE) else 1


if __name__ == "__main__":
    sys.exit(main())
