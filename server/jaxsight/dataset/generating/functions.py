"""The functions that random steps are chosen from, with names for their results.

Those of real numbers are spelled so that their results are defined and of moderate size wherever
their arguments are: no step has to know the range of a value.

In a pattern, `{x}` and `{y}` are values, `{k}` and `{m}` small numbers, `{mask}` is one less than a
power of two, `{a}` an argument `axis=…`, `{axis}` an axis, and `{d}` a dtype.
"""

from __future__ import annotations

SMOOTH = {
    "jnp.tanh({x})": "bounded",
    "jnp.sin(0.5 * {x})": "wave",
    "jnp.cos(0.5 * {x})": "wave",
    "jnp.exp(jnp.tanh({x}))": "growth",
    "jnp.exp(-jnp.abs({x}))": "decay",
    "jnp.expm1(jnp.tanh({x}))": "growth",
    "jnp.exp2(-jnp.abs({x}))": "powers",
    "jnp.log(jnp.abs({x}) + 0.5)": "logs",
    "jnp.log1p(jnp.abs({x}))": "logs",
    "jnp.log2(1.5 + jnp.abs({x}))": "octaves",
    "jnp.log10({x} ** 2 + 1.0)": "decades",
    "jnp.sqrt(jnp.abs({x}) + 0.1)": "roots",
    "jnp.sqrt(1.0 + jax.nn.softplus({x}))": "roots",
    "lax.rsqrt(jnp.abs({x}) + 0.3)": "inverse_roots",
    "jnp.cbrt(jnp.abs({x}) + 0.1)": "cube_roots",
    "jnp.square(jnp.tanh({x}))": "squares",
    "jnp.tanh({x}) ** 3": "cubes",
    "{x} / (1.0 + jnp.abs({x}))": "softened",
    "jax.nn.sigmoid({x})": "gate",
    "jax.nn.softplus({x})": "rates",
    "jax.nn.relu({x}) + 0.1 * {x}": "rectified",
    "jax.nn.gelu({x})": "activated",
    "jax.nn.silu({x})": "activated",
    "jax.nn.elu({x})": "activated",
    "jax.nn.leaky_relu({x})": "activated",
    "jax.nn.log_sigmoid({x})": "log_probabilities",
    "jax.nn.soft_sign({x})": "softened",
    "0.3 * {x} + jax.nn.relu6({x})": "leaky",
    "jax.nn.selu({x})": "activated",
    "jax.nn.mish({x})": "activated",
    "0.2 * {x} - jax.nn.hard_tanh({x})": "clipped",
    "jnp.arctan({x})": "angle",
    "jnp.arcsin(0.9 * jnp.tanh({x}))": "angle",
    "jnp.arccos(0.9 * jnp.sin({x}))": "angle",
    "jnp.sinh(jnp.tanh({x}))": "hyperbolic",
    "jnp.cosh(jnp.sin({x}))": "hyperbolic",
    "jnp.tan(jnp.tanh({x}))": "slope",
    "jnp.arcsinh({x})": "compressed",
    "jnp.arccosh(jnp.abs({x}) + 1.2)": "distance",
    "jnp.arctanh(0.9 * jnp.tanh({x}))": "rapidity",
    "jnp.reciprocal(jnp.abs({x}) + 0.5)": "inverse",
    "1.0 / (1.0 + {x} ** 2)": "inverse",
    "jnp.sinc({x} / 4.0)": "kernel_values",
    "lax.erf({x})": "errors",
    "lax.erfc(jnp.tanh({x}))": "tails",
    "lax.erf_inv(0.8 * jnp.tanh({x}))": "quantiles",
    "lax.logistic({x})": "gate",
    "jnp.deg2rad({x})": "radians",
    "jax.nn.sigmoid({x}) * {x}": "gated",
    "0.5 * {x}": "scaled",
    "{x} + 1.0": "shifted",
    "{x} - 0.25": "shifted",
    "{x} / 3.0": "scaled",
    "2.0 - 0.5 * {x}": "reflected",
    "1.5 * {x}": "scaled",
}
"""Functions of real numbers, and names for their results."""

EVERYDAY = (
    *("bounded", "wave", "logs", "softened", "gate", "rates", "activated", "inverse", "gated"),
    *("scaled", "decay", "rectified"),
)
"""Names of the results of those that most programs of people have."""

SPECIAL = {
    "lax.lgamma(jnp.abs({x}) + 0.5)": "log_gamma",
    "lax.digamma(jnp.abs({x}) + 0.5)": "digammas",
    "jax.scipy.special.i0e({x})": "bessel",
    "jax.scipy.special.i1e({x})": "bessel",
    "jax.scipy.special.logit(0.1 + 0.8 * jax.nn.sigmoid({x}))": "logits",
    "jax.scipy.special.entr(jnp.abs({x}) + 0.1)": "entropies",
    "jax.scipy.stats.norm.cdf({x})": "cumulative",
    "jax.scipy.stats.norm.logpdf(jnp.tanh({x}))": "log_density",
}
"""Those of `float32` and `float64` only."""

JUMPING = {
    "jnp.floor({x})": "floored",
    "jnp.ceil({x})": "raised",
    "jnp.round({x})": "rounded",
    "jnp.trunc({x})": "whole",
    "lax.reduce_precision({x}, 8, 7)": "coarse",
    "jnp.sign({x}) * jnp.sqrt(jnp.abs({x}) + 0.1)": "signed_roots",
    "lax.stop_gradient({x})": "frozen",
    "jnp.remainder({x}, 1.5)": "remainders",
    "jnp.where({x} > 0.5, {x}, 0.2 * {x})": "bent",
}
"""Those that jump, or whose derivative is another than their slope."""

COMPLEX_FUNCTIONS = {
    "jnp.conj({x})": "conjugate",
    "{x} / (jnp.abs({x}) + 0.5)": "phasors",
    "{x} / (1.0 + jnp.abs({x}))": "softened",
    "jnp.tanh({x} / (4.0 + jnp.abs({x})))": "bounded",
    "jnp.sin({x} / (2.0 + jnp.abs({x})))": "wave",
    "jnp.cos({x} / (2.0 + jnp.abs({x})))": "wave",
    "jnp.exp({x} / (1.0 + jnp.abs({x})))": "growth",
    "jnp.sqrt({x} + 8.0)": "roots",
    "lax.complex(jnp.imag({x}), jnp.real({x}))": "swapped",
    "{x} * (0.5 + 0.5j)": "turned",
    "jnp.log(jnp.abs({x}) + 1.0) * {x}": "weighted",
    "{x} + 0.5j": "shifted",
}

INTEGER_FUNCTIONS = {
    "{x} & {mask}": "masked",
    "{x} ^ {mask}": "toggled",
    "{x} | {mask}": "flagged",
    "{x} << {k}": "shifted",
    "{x} >> {k}": "halved",
    "~{x}": "inverted",
    "lax.population_count({x})": "bit_counts",
    "jnp.bitwise_count({x}).astype({x}.dtype)": "bit_counts",
    "lax.clz({x})": "leading_zeros",
    "{x} * {k}": "multiples",
    "{x} + {k}": "moved_on",
    "{x} % {m}": "residues",
    "{x} // {m}": "quotients",
    "jnp.minimum({x}, {mask})": "capped",
    "jnp.maximum({x}, {mask})": "raised",
    "jnp.clip({x}, 5, 60)": "clipped",
    "{x} ** 2": "squares",
    "jnp.where({x} > {m}, {x}, {k})": "replaced",
    "jnp.abs({x} - {m})": "distances",
    "jnp.sign({x}) * {k}": "signs",
}

SUMS = {
    "{x} + {y}": "total",
    "{x} - {y}": "difference",
    "{x} * jnp.tanh({y})": "modulated",
    "0.5 * ({x} + {y})": "average",
    "{x} / (1.0 + jnp.abs({y}))": "ratio",
    "{x} / (1.0 + {y} ** 2)": "ratio",
    "{x} * jax.nn.sigmoid({y})": "gated",
    "jnp.maximum({x}, {y})": "larger",
    "jnp.minimum({x}, {y})": "smaller",
    "jnp.logaddexp({x}, {y})": "soft_maximum",
    "jnp.arctan2({x}, jnp.abs({y}) + 0.5)": "angle",
    "jnp.sqrt({x} ** 2 + {y} ** 2 + 1.0)": "radius",
    "jnp.power(jax.nn.sigmoid({x}) + 0.5, jnp.tanh({y}))": "powers",
    "jnp.hypot(jnp.tanh({x}) + 3.0, {y})": "distance",
    "jnp.exp(-jnp.abs({x} - {y}))": "similarity",
}
"""Functions of two real numbers that are defined everywhere."""

GIVEN_PAIRS = {
    "{x} * {y}": "product",
    "jnp.copysign({x}, {y})": "signed",
    "jnp.where({x} > {y}, {x}, 0.5 * {y})": "chosen",
    "jnp.heaviside({x}, 0.5) * {y}": "gated",
    "jnp.remainder({x}, jnp.abs({y}) + 0.5)": "remainders",
}
"""Functions of two arguments."""

INTEGER_PAIRS = {
    "{x} + {y}": "total",
    "{x} - {y}": "difference",
    "{x} * {y}": "product",
    "{x} & {y}": "common",
    "{x} | {y}": "union",
    "{x} ^ {y}": "hashed",
    "jnp.maximum({x}, {y})": "larger",
    "jnp.minimum({x}, {y})": "smaller",
    "{x} % (({y} & 7) + 1)": "residues",
    "{x} // (({y} & 7) + 1)": "quotients",
    "{x} << ({y} & 3)": "shifted",
    "{x} >> ({y} & 3)": "halved",
    "jnp.where({x} > {y}, {x}, {y})": "chosen",
}

COMPLEX_PAIRS = {
    "{x} + {y}": "total",
    "{x} - {y}": "difference",
    "{x} * {y} / (1.0 + jnp.abs({y}))": "product",
    "{x} / (1.0 + jnp.abs({y}))": "ratio",
    "{x} + 0.5 * jnp.conj({y})": "blended",
}

_PARTS = ("jnp.abs({x})", "jnp.real({x})", "jnp.imag({x})", "jnp.real({x}) + jnp.imag({x})")
NUMBERS = {
    "complex64": _PARTS,
    "complex128": _PARTS,
    "integer": ("({x} % 61).astype({d}) / 8.0", "({x} & 15).astype({d})"),
    "bool": ("{x}.astype({d})", "jnp.where({x}, 1.0, -0.5).astype({d})"),
    "float": (*("{x}.astype({d})", "lax.convert_element_type({x}, {d})", "jnp.asarray({x}, {d})"),),
}
"""Moderate floating-point numbers of values of other dtypes."""

COMPARISONS = ("{x} > {y}", "{x} < {y}", "{x} >= {y}", "{x} <= {y}")
TESTS = ("{x} > 0.3", "{x} < 0.5", "{x} >= 0.0", "{x} <= 0.2", "jnp.abs({x}) < 1.0")
INTEGER_TESTS = ("{x} > {m}", "{x} % {m} == 0", "{x} % 2 != 1", "({x} & 3) == 1", "{x} <= {m}")

REDUCTIONS = {
    "jnp.mean({x}{a})": "average",
    "jnp.sum({x}{a}) / {x}.size": "total",
    "jnp.max({x}{a})": "largest",
    "jnp.min({x}{a})": "smallest",
    "jnp.var({x}{a})": "variance",
    "jnp.mean({x} ** 2{a})": "energy",
    "jnp.sqrt(jnp.mean({x} ** 2{a}) + 1e-3)": "rms",
    "jnp.mean(jnp.abs({x}){a})": "size",
    "jax.nn.logsumexp({x}{a})": "log_total",
    "jnp.sqrt(jnp.var({x}{a}) + 1e-2)": "deviation",
    "jnp.ptp({x}{a})": "spread",
    "jnp.prod(1.0 + 0.1 * jnp.tanh({x}){a})": "growth",
    "jnp.median({x}.astype(jnp.float32){a})": "median",
}

MOVES = {
    "jnp.flip({x}, axis={axis})": "reversed_values",
    "jnp.roll({x}, {k}, axis={axis})": "shifted",
    "{x}[..., ::2]": "strided",
    "{x}[::-1]": "flipped",
    "jnp.pad({x}, {widths})": "padded",
    'jnp.pad({x}, {widths}, mode="edge")': "padded",
    "jnp.repeat({x}, 2, axis={axis})": "repeated",
    "jnp.concatenate([{x}, {x}[::-1]], axis={axis})": "mirrored",
}
RANK_MOVES = {
    "jnp.transpose({x}, {order})": "transposed",
    "jnp.swapaxes({x}, 0, -1)": "swapped",
    "{x}.T": "transposed",
    "jnp.moveaxis({x}, 0, -1)": "turned",
}
"""Moves of values with two dimensions or more."""

CUMULATIVE = {
    "jnp.cumsum({x}, axis={axis}) / 4.0": "running_total",
    "lax.cummax({x}, axis={axis})": "running_max",
    "lax.cummin({x}, axis={axis})": "running_min",
    "jnp.sort({x}, axis={axis})": "ordered",
    "{x} - jnp.roll({x}, 1, axis={axis})": "changes",
    "lax.cumlogsumexp({x}, axis={axis})": "running_log",
    "jnp.cumprod(1.0 + 0.1 * jnp.tanh({x}), axis={axis})": "running_product",
}

NORMAL_FORMS = {
    "{x} * jax.nn.softmax({x}, {a})": "attended",
    "jnp.square(jax.nn.softmax({x}, {a}))": "sharpened",
    "jax.nn.log_softmax({x}, {a})": "log_probabilities",
    "jnp.square({x} - jnp.mean({x}, {a}, keepdims=True))": "squared_deviations",
    "{x} / (jnp.max(jnp.abs({x}), {a}, keepdims=True) + 1e-1)": "normalized",
    "{x} * lax.rsqrt(jnp.mean({x} ** 2, {a}, keepdims=True) + 1e-1)": "normalized",
    "{x} / (jnp.std({x}, {a}, keepdims=True) + 0.5)": "rescaled",
}

PLAIN = {
    "jnp.tanh({x})": "bounded",
    "jnp.sin({x})": "wave",
    "jnp.cos({x})": "wave",
    "0.5 * {x}": "scaled",
    "{x} + 1.0": "shifted",
    "jnp.exp(-jnp.abs({x}))": "decay",
    "jnp.log1p(jnp.abs({x}))": "logs",
    "jnp.maximum({x}, 0.0)": "rectified",
    "jax.nn.sigmoid({x})": "gate",
    "jnp.arctan({x})": "angle",
}
"""Functions in which no rule finds anything."""
