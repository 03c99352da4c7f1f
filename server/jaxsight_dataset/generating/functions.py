"""What random steps are chosen from: expressions and idioms of people's programs, with names.

Those of real numbers are defined, and of moderate size, wherever their arguments are: no step has
to know the range of a value. What another range needs, such as a logarithm of densities, belongs
in a template.

In a pattern, `{x}` and `{y}` are values, `{k}` and `{m}` small numbers, `{mask}` is one less than a
power of two, `{c}` a factor below one, `{s}` a scale, `{e}` a small number, `{a}` an argument
`axis=…` with a comma before it, `{keep}` the same for `keepdims`, `{axis}` an axis, `{n}` the size
along it, and `{d}` a dtype. The last line of a pattern is its value; lines before it
assign to names that the rest of the pattern has in braces.
"""

from __future__ import annotations

ACTIVATIONS = {
    "jnp.tanh({x})": "activated",
    "jax.nn.relu({x})": "activated",
    "jnp.maximum({x}, 0.0)": "rectified",
    "jax.nn.gelu({x})": "activated",
    "jax.nn.silu({x})": "activated",
    "{x} * jax.nn.sigmoid(1.702 * {x})": "activated",
    "jax.nn.elu({x})": "activated",
    "jax.nn.leaky_relu({x})": "activated",
    "jax.nn.softplus({x})": "activated",
    "jax.nn.sigmoid({x})": "gates",
    "jax.nn.selu({x})": "activated",
    "jax.nn.mish({x})": "activated",
    "jax.nn.hard_tanh({x})": "activated",
    "jax.nn.soft_sign({x})": "activated",
    "jnp.square(jax.nn.relu({x}))": "activated",
}
"""What follows an affine layer."""

OF_KERNELS = {
    "jnp.tanh({x})": "activated",
    "jnp.maximum({x}, 0.0)": "rectified",
    "jax.nn.sigmoid({x})": "gates",
    "{x} * jax.nn.sigmoid({x})": "activated",
    "{x} * jax.nn.sigmoid(1.702 * {x})": "activated",
    "jnp.where({x} > 0.0, {x}, 0.1 * {x})": "activated",
    "{x} / (1.0 + jnp.abs({x}))": "activated",
}
"""Activations of primitives that Pallas lowers for all devices."""

BASES = {
    "jnp.sin({x})": "wave",
    "jnp.cos({x})": "wave",
    "jnp.tanh({x})": "saturated",
    "jnp.square({x})": "squares",
    "jnp.exp(-jnp.square({x}))": "bump",
    "jnp.log1p(jnp.square({x}))": "logs",
    "jnp.sqrt(1.0 + jnp.square({x}))": "lengths",
    "jnp.arctan({x})": "angles",
    "jnp.arcsinh({x})": "compressed",
    "jax.nn.sigmoid({x})": "gates",
    "jax.nn.softplus({x})": "rates",
    "lax.erf({x})": "errors",
    "jnp.sinc({x})": "kernel",
    "jnp.sin({s} * {x})": "wave",
}
"""Smooth curved functions of real numbers, of which `CURVES` and `SURFACES` are made."""

POWERS = {
    "{x} - {x} ** 3 / 6.0": "series",
    "{x} ** 3 - {x}": "force",
    "1.0 + {x} + 0.5 * {x} ** 2": "series",
    "0.5 * (5.0 * {x} ** 3 - 3.0 * {x})": "legendre",
    "{x} * (1.0 - {x})": "growth",
    "{s} * {x} ** 2 - {c} * {x}": "parabola",
}
"""Polynomials."""

CURVES = {
    "{f}": "curve",
    "{f} - {c} * {x}": "curve",
    "{x} + {c} * {f}": "curve",
    "{x} * {f}": "product",
    "{f} + {c} * {g}": "curve",
    "{f} * {g}": "product",
    "{s} * {f} - {g}": "curve",
    "1.0 - {c} * {f}": "curve",
}
"""Functions of one value, where `{f}` and `{g}` are different ones of `BASES`."""

SURFACES = {
    "{f} - {y}": "residuals",
    "{f} + {y}": "total",
    "{f} * {y}": "product",
    "{x} * {h}": "product",
    "{x} - {h}": "residuals",
    "{f} * {h}": "product",
    "{f} - {h}": "residuals",
    "{x} * {y} + {c} * {f}": "coupling",
    "jnp.sin({x} * {y})": "wave",
    "jnp.tanh({x} * {y})": "saturated",
    "jnp.sin({x} - {y})": "wave",
    "jnp.square({x} - {y})": "squared_errors",
    "jnp.exp(-jnp.square({x} - {y}))": "similarity",
    "jnp.log1p(jnp.square({x} - {y}))": "robust_errors",
    "jnp.sqrt(1.0 + jnp.square({x} - {y})) - 1.0": "robust_errors",
    "jax.nn.softplus({x}) - {x} * {y}": "logistic_losses",
    "jax.nn.softplus(-{x} * {y})": "margin_losses",
    "{x} * jax.nn.sigmoid({y})": "gated",
    "jnp.square({y} - {x} ** 2) + {c} * {x}": "valley",
}
"""Functions of two values, where `{h}` is one of `BASES` of `{y}`."""

BLENDS = {
    "{x} * {y} + {z}": "total",
    "{x} + {z} * ({y} - {x})": "interpolated",
    "gate = jax.nn.sigmoid({z})\n{gate} * {x} + (1.0 - {gate}) * {y}": "blended",
    "jnp.tanh({x} + {y}) * {z}": "modulated",
    "{f} * {y} - {z}": "residuals",
    "gap = {x} - {y}\n{gap} * jnp.exp(-jnp.square({z}))": "weighted",
    "jnp.where({x} > {y}, {x}, {y}) + {z}": "total",
    "jnp.hypot({x}, {y}) + {z}": "total",
}
"""Functions of three values."""

POINTWISE = {
    "jnp.sign({x}) * jnp.log1p(jnp.abs({x}))": "symmetric_logs",
    "jnp.arcsinh({x})": "compressed",
    "jnp.exp(-jnp.square({x}))": "bump",
    "jnp.exp(-jnp.abs({x}))": "decay",
    "1.0 / (1.0 + jnp.square({x}))": "lorentzian",
    "jnp.square({x})": "squares",
    "jnp.abs({x})": "magnitudes",
    "jnp.sin({x})": "wave",
    "jnp.cos({x})": "wave",
    "jnp.tanh({x})": "bounded",
    "jnp.arctan({x})": "angles",
    "jnp.clip({x}, -1.0, 1.0)": "clipped",
    "{c} * {x}": "scaled",
    "{s} * {x} - 1.0": "rescaled",
    "1.0 - {x}": "complement",
    "jax.nn.relu({x})": "positive_part",
    "jnp.sqrt(jnp.square({x}) + {e})": "magnitudes",
    "jnp.sign({x}) * jnp.maximum(jnp.abs({x}) - 0.1, 0.0)": "shrunk",
}
"""What is done to each number of an array."""

FINAL = {
    pattern: name
    for pattern, name in POINTWISE.items()
    if name
    not in ("scaled", "rescaled", "shifted", "complement", "wave", "positive_part", "clipped")
}
"""Those that a result ends with."""

OF_NUMBERS = {
    "{c} * {x}": "scaled",
    "jnp.tanh({x})": "bounded",
    "jnp.square({x})": "squared",
    "jnp.log1p(jnp.square({x}))": "log_size",
    "jnp.exp(-jnp.square({x}))": "decay",
    "jax.nn.softplus({x})": "rate",
    "jnp.sqrt(1.0 + jnp.square({x}))": "length",
}
"""What is done to a number that is alone."""

JUMPING = {
    "jnp.floor({x})": "floored",
    "jnp.round({x})": "rounded",
    "jnp.round({x}, 1)": "rounded",
    "jnp.trunc({x})": "whole",
    "lax.stop_gradient({x})": "frozen",
    "{x} % 1.5": "wrapped",
    "jnp.where(jnp.abs({x}) > 0.1, {x}, 0.0)": "thresholded",
}
"""Those that jump, or whose derivative is another than their slope."""

COMPLEX_FUNCTIONS = {
    "jnp.conj({x})": "conjugate",
    "{x} / (jnp.abs({x}) + 1e-3)": "phasors",
    "{x} * jnp.exp(0.5j)": "turned",
    "{x} ** 2": "squares",
    "jnp.exp(-jnp.abs({x}) ** 2) * {x}": "packet",
    "jnp.sqrt({x} + 8.0)": "roots",
    "jnp.sin({x})": "wave",
    "jnp.cos({x})": "wave",
    "jnp.tanh({x} / (4.0 + jnp.abs({x})))": "bounded",
    "lax.complex(jnp.imag({x}), jnp.real({x}))": "swapped",
    "{x} * jnp.log1p(jnp.abs({x}))": "weighted",
}

INTEGER_FUNCTIONS = {
    "{x} & {mask}": "low_bits",
    "{x} ^ {mask}": "toggled",
    "{x} | 1": "odd",
    "{x} << {k}": "shifted",
    "{x} >> {k}": "halved",
    "~{x}": "inverted",
    "lax.population_count({x})": "bit_counts",
    "lax.clz({x})": "leading_zeros",
    "{x} * {k}": "multiples",
    "{x} % {m}": "remainders",
    "{x} // {k}": "quotients",
    "jnp.clip({x}, 0, {m})": "clipped",
    "{x} ** 2": "squares",
    "jnp.abs({x} - {m})": "distances",
}

SUMS = {
    "{x} + {y}": "total",
    "{x} - {y}": "difference",
    "{x} * {y}": "product",
    "0.5 * ({x} + {y})": "average",
    "{x} + {c} * {y}": "total",
    "{x} * jax.nn.sigmoid({y})": "gated",
    "jnp.maximum({x}, {y})": "larger",
    "jnp.minimum({x}, {y})": "smaller",
    "jnp.logaddexp({x}, {y})": "log_total",
    "jnp.square({x} - {y})": "squared_errors",
    "jnp.abs({x} - {y})": "errors",
    "jnp.exp(-jnp.square({x} - {y}))": "similarity",
    "{x} / (1.0 + jnp.abs({y}))": "ratio",
}
"""Functions of two real numbers that are defined everywhere."""

RESIDUALS = {
    "{x} + {y}": "residual",
    "{x} - {y}": "difference",
    "{x} * {y}": "modulated",
    "{x} + {c} * {y}": "total",
    "{x} * jax.nn.sigmoid({y})": "gated",
    "{y} + jnp.tanh({x})": "residual",
    "jnp.maximum({x}, {y})": "larger",
    "jnp.square({x} - {y})": "squared_errors",
}
"""What a result is combined with an argument by."""

GIVEN_PAIRS = {
    "{x} * {y}": "product",
    "jnp.copysign({x}, {y})": "signed",
    "jnp.where({x} > {y}, {x}, {c} * {y})": "chosen",
    "jnp.heaviside({x}, 0.5) * {y}": "gated",
    "jnp.arctan2({x}, {y})": "angles",
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
    "{x} % (jnp.abs({y}) + 1)": "remainders",
    "{x} << ({y} & 3)": "shifted",
    "jnp.where({x} > {y}, {x} - {y}, 0)": "excess",
}

COMPLEX_PAIRS = {
    "{x} + {y}": "total",
    "{x} - {y}": "difference",
    "{x} * {y}": "product",
    "{x} * jnp.conj({y})": "correlation",
    "{x} / (1.0 + jnp.abs({y}))": "ratio",
    "{x} * jnp.exp(1j * jnp.abs({y}))": "turned",
}

_PARTS = ("jnp.abs({x})", "jnp.real({x})", "jnp.imag({x})", "jnp.square(jnp.abs({x}))")
NUMBERS = {
    "complex64": _PARTS,
    "complex128": _PARTS,
    "integer": ("({x} & 127).astype({d}) / 127.0", "({x} % 10).astype({d})"),
    "bool": ("{x}.astype({d})", "jnp.where({x}, 1.0, -1.0).astype({d})"),
    "float": (*("{x}.astype({d})", "lax.convert_element_type({x}, {d})", "jnp.asarray({x}, {d})"),),
}
"""Moderate floating-point numbers of values of other dtypes."""

COMPARISONS = ("{x} > {y}", "{x} < {y}", "{x} >= {y}", "{x} <= {y}")
TESTS = ("{x} > 0.5", "{x} < 0.5", "{x} >= 0.0", "{x} <= 0.0", "jnp.abs({x}) < 1.0")
INTEGER_TESTS = ("{x} > {m}", "{x} % {k} == 0", "{x} % 2 == 1", "({x} & 1) == 0", "{x} <= {m}")
