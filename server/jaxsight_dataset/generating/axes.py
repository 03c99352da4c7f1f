"""Idioms along an axis, or of whole arrays, that random steps are chosen from.

Their patterns are those of `functions`.
"""

from __future__ import annotations

REDUCTIONS = {
    "jnp.mean({x}{a})": "mean",
    "jnp.sum({x}{a})": "total",
    "jnp.max({x}{a})": "largest",
    "jnp.min({x}{a})": "smallest",
    "jnp.var({x}{a})": "variance",
    "jnp.std({x}{a})": "deviation",
    "jnp.sum(jnp.square({x}){a})": "energy",
    "jnp.mean(jnp.square({x}){a})": "power",
    "jnp.mean(jnp.abs({x}){a})": "mean_size",
    "jnp.max(jnp.abs({x}){a})": "peak",
    "jnp.sqrt(jnp.sum(jnp.square({x}){a}) + {e})": "norm",
    "jax.nn.logsumexp({x}{a})": "log_total",
    "jnp.ptp({x}{a})": "spread",
    "jnp.mean({x}{a}) / (jnp.std({x}{a}) + {e})": "signal_to_noise",
    "jnp.prod(1.0 + 0.01 * {x}{a})": "compounded",
    "jnp.mean({x} * jnp.roll({x}, 1{a}){a})": "autocorrelation",
    "centered = {x} - jnp.mean({x}{a}{keep})\njnp.mean({centered} ** 3{a})": "skewness",
    "weights = jax.nn.softmax({x}{a})\njnp.sum({weights} * {x}{a})": "attended",
}
WIDE_REDUCTIONS = {
    "jnp.median({x}{a})": "median",
    "jnp.quantile({x}, 0.9{a})": "quantile",
}
"""Those of `float32` and `float64` only."""

POOLS = {
    pattern: name
    for pattern, name in REDUCTIONS.items()
    if name
    in ("mean", "total", "largest", "norm", "log_total", "power", "attended", "rms", "energy")
}
"""Reductions of units of neural networks."""

EXTREMES = ("largest", "smallest", "peak", "spread", "extreme", "confidence")
"""Names of those that read few elements."""

PAIRS = (
    "{x}, jnp.mean({x}{a})",
    "{x}, jnp.linalg.norm({x}{a})",
    "jnp.mean({x}{a}), jnp.std({x}{a})",
    "jnp.mean({x}{a}), jnp.max({x}{a})",
    "jnp.sum({x}{a}), jnp.sum(jnp.square({x}){a})",
)
"""Two results of one value."""

_BOUNDED = {
    "jnp.mean({x}{a})": "mean",
    "jnp.sum({x}{a})": "total",
    "jnp.sqrt(jnp.mean(jnp.square({x}){a}) + {e})": "rms",
    "jnp.sum(jnp.square({x}){a})": "energy",
}

SUMMARIES = {
    **dict.fromkeys(("bump", "decay", "lorentzian", "shrunk", "clipped", "thresholded"), _BOUNDED),
    "probabilities": {
        "-jnp.sum({x} * jnp.log({x} + {e}){a})": "entropy",
        "jnp.max({x}{a})": "confidence",
        "jnp.sum(jnp.square({x}){a})": "purity",
    },
    "log_probabilities": {
        "jnp.max({x}{a})": "largest",
        "jnp.mean({x}{a})": "mean_log_probability",
        "-jnp.sum(jnp.exp({x}) * {x}{a})": "entropy",
    },
    "standardized": {
        "jnp.mean({x} ** 3{a})": "skewness",
        "jnp.mean({x} ** 4{a}) - 3.0": "kurtosis",
        "jnp.max(jnp.abs({x}){a})": "extreme",
    },
    "centered": {
        "jnp.mean(jnp.square({x}){a})": "variance",
        "jnp.sqrt(jnp.mean(jnp.square({x}){a}) + {e})": "deviation",
        "jnp.max(jnp.abs({x}){a})": "extreme",
        "jnp.mean({x} ** 3{a})": "third_moment",
    },
}
"""Reductions of values that are normalized or bounded, by the names of these: the mean of
probabilities, for one, says nothing, and the largest of clipped values is often the bound."""

MOVES = {
    "jnp.flip({x}, axis={axis})": "flipped",
    "jnp.roll({x}, {k}, axis={axis})": "rolled",
    "jnp.roll({x}, -1, axis={axis})": "rolled",
    "{x}[..., ::2]": "strided",
    "{x}[::-1]": "flipped",
    "jnp.pad({x}, {widths})": "padded",
    'jnp.pad({x}, {widths}, mode="edge")': "padded",
    'jnp.pad({x}, {widths}, mode="wrap")': "padded",
    "jnp.repeat({x}, 2, axis={axis})": "repeated",
    "jnp.concatenate([{x}, {x}[::-1]], axis=0)": "mirrored",
    "jnp.expand_dims({x}, {axis})": "expanded",
}
RANK_MOVES = {
    "jnp.transpose({x}, {order})": "transposed",
    "jnp.swapaxes({x}, 0, -1)": "swapped",
    "{x}.T": "transposed",
    "jnp.moveaxis({x}, 0, -1)": "moved",
}
"""Moves of values with two dimensions or more."""

CUMULATIVE = {
    "jnp.cumsum({x}, axis={axis})": "running_total",
    "lax.cummax({x}, axis={axis})": "running_max",
    "lax.cummin({x}, axis={axis})": "running_min",
    "jnp.sort({x}, axis={axis})": "ordered",
    "{x} - jnp.roll({x}, 1, axis={axis})": "changes",
    "lax.cumlogsumexp({x}, axis={axis})": "running_log",
    "jnp.cumprod(1.0 + 0.01 * {x}, axis={axis})": "compounded",
    "jnp.diff({x}, axis={axis})": "changes",
    "lax.cumsum({x}, axis={axis}, reverse=True)": "remaining",
    "jnp.cumsum({x} - jnp.mean({x}, axis={axis}, keepdims=True), axis={axis})": "walk",
    "0.5 * ({x} + jnp.roll({x}, 1, axis={axis}))": "smoothed",
}

NORMAL_FORMS = {
    "jax.nn.softmax({x}{a})": "probabilities",
    "jax.nn.softmax({x} / {s}{a})": "probabilities",
    "exponentials = jnp.exp({x} - jnp.max({x}{a}{keep}))\n"
    "{exponentials} / jnp.sum({exponentials}{a}{keep})": "probabilities",
    "jax.nn.log_softmax({x}{a})": "log_probabilities",
    "{x} - jnp.mean({x}{a}{keep})": "centered",
    "{x} - jnp.max({x}{a}{keep})": "shifted",
    "mean = jnp.mean({x}{a}{keep})\nstd = jnp.std({x}{a}{keep})\n"
    "({x} - {mean}) / ({std} + {e})": "standardized",
    "mean = jnp.mean({x}{a}{keep})\nvariance = jnp.var({x}{a}{keep})\n"
    "({x} - {mean}) * lax.rsqrt({variance} + {e})": "standardized",
    "centered = {x} - jnp.mean({x}{a}{keep})\nvariance = jnp.mean({centered} ** 2{a}{keep})\n"
    "{centered} / jnp.sqrt({variance} + {e})": "standardized",
    "jax.nn.standardize({x}{a}, epsilon={e})": "standardized",
    "power = jnp.mean(jnp.square({x}){a}{keep})\n{x} * lax.rsqrt({power} + {e})": "normalized",
    "norm = jnp.sqrt(jnp.sum({x} ** 2{a}{keep}) + {e})\n{x} / {norm}": "unit",
    "{x} / (jnp.max(jnp.abs({x}){a}{keep}) + {e})": "scaled",
    "low = jnp.min({x}{a}{keep})\nhigh = jnp.max({x}{a}{keep})\n"
    "({x} - {low}) / ({high} - {low} + {e})": "rescaled",
    "{x} * jax.nn.softmax({x}{a})": "attended",
    "threshold = jnp.mean({x}{a}{keep})\njnp.where({x} > {threshold}, {x}, 0.0)": "thresholded",
}

LAYER_FORMS = {
    pattern: name
    for pattern, name in NORMAL_FORMS.items()
    if name in ("standardized", "normalized", "unit", "probabilities", "log_probabilities")
}
"""Normalizations of neural networks."""

SCALES = {
    pattern: name
    for pattern, name in NORMAL_FORMS.items()
    if name in ("centered", "standardized", "scaled", "rescaled", "shifted")
}
FIGURES = {
    pattern: name
    for pattern, name in REDUCTIONS.items()
    if name in ("mean", "total", "largest", "smallest", "variance", "deviation", "rms", "mean_size")
    or name in ("peak", "spread", "power")
}
"""Normalizations and reductions of physical and other quantities."""
