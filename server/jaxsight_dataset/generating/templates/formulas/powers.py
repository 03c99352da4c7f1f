"""Templates of formulas of logarithms and powers.

A formula has a title, and lines of a snippet, whose last one is its value.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

LOGARITHMS_AND_POWERS = {
    "decibels": (
        "Convert amplitudes to decibels",
        """
        choose(
            20.0 * jnp.log10(jnp.abs(signal) + 0.01),
            10.0 * jnp.log10(x / reference),
            10.0 * jnp.log10(signal**2 + 0.01),
            20.0 * (jnp.log10(x) - jnp.log10(reference)),
        )
        """,
    ),
    "mel_scale": (
        "Convert frequencies to mels",
        """
        choose(2595.0 * jnp.log10(1.0 + x / 0.7), 1127.0 * jnp.log1p(x / 0.7))
        """,
    ),
    "box_cox": (
        "Apply the Box-Cox transformation",
        """
        choose(
            (x**rate - 1.0) / rate,
            (x**0.5 - 1.0) / 0.5,
            jnp.expm1(rate * jnp.log(x)) / rate,
            jnp.where(signal > 0.0, jnp.log1p(jnp.abs(signal)), -jnp.log1p(jnp.abs(signal))),
        )
        """,
    ),
    "log_odds": (
        "Compute log odds",
        """
        safe = choose(0.01 + 0.98 * p, jnp.clip(p, 0.01, 0.99))
        choose(
            jnp.log(safe / (1.0 - safe)),
            jnp.log(safe) - jnp.log1p(-safe),
            jnp.log(safe) - jnp.log1p(-safe) + signal,
        )
        """,
    ),
    "binary_entropy": (
        "Compute entropies in bits",
        """
        safe = choose(0.01 + 0.98 * p, jnp.clip(p, 0.01, 0.99))
        choose(
            -safe * jnp.log2(safe) - (1.0 - safe) * jnp.log2(1.0 - safe),
            -(safe * jnp.log(safe) + (1.0 - safe) * jnp.log1p(-safe)),
        )
        """,
    ),
    "half_life": (
        "Compute what has not decayed",
        """
        choose(
            jnp.exp2(-x / reference),
            rate * jnp.exp2(-x / reference),
            1.0 - jnp.exp2(-x),
            0.5 ** (x / reference),
            jnp.exp2(signal),
        )
        """,
    ),
    "magnitude": (
        "Compute magnitudes of stars",
        """
        choose(-2.5 * jnp.log10(x / reference), -2.5 * jnp.log10(x) + rate)
        """,
    ),
    "octaves": (
        "Compute intervals in octaves",
        """
        choose(
            jnp.log2(x / reference),
            12.0 * jnp.log2(x),
            1200.0 * jnp.log2(x / reference),
            rate * jnp.exp2(signal / 12.0),
            jnp.exp2(jnp.round(signal) / 12.0),
        )
        """,
    ),
    "mu_law": (
        "Compress a signal by the mu law",
        """
        compressed = jnp.log1p(255.0 * jnp.abs(signal)) / jnp.log1p(255.0)
        choose(
            jnp.sign(signal) * compressed,
            jnp.sign(signal) * jnp.expm1(jnp.abs(jnp.tanh(signal)) * 5.5) / 255.0,
        )
        """,
    ),
    "inverse_softplus": (
        "Invert softplus",
        """
        choose(
            jnp.log(jnp.expm1(x)),
            x + jnp.log(-jnp.expm1(-x)),
            jnp.log(jnp.expm1(rate * x)) / rate,
        )
        """,
    ),
    "cube_root": (
        "Compute sizes from volumes",
        """
        choose(
            jnp.cbrt(x),
            jnp.cbrt(3.0 * x / (4.0 * jnp.pi)),
            jnp.cbrt(x * reference),
            jnp.cbrt(x) - jnp.cbrt(reference),
            rate * jnp.cbrt(x) ** 2,
        )
        """,
    ),
    "gompertz": (
        "Compute growth curves",
        """
        choose(
            rate * jnp.exp(-reference * jnp.exp(-x)),
            -rate * jnp.expm1(-x),
            jnp.exp(-rate * jnp.expm1(p)),
            -jnp.expm1(-rate * x) / rate,
            1.0 / (1.0 + jnp.exp(-signal)),
        )
        """,
    ),
    "relative_entropy": (
        "Compute relative entropies",
        """
        first = 0.01 + 0.98 * p
        second = 0.01 + 0.98 * q
        choose(
            first * jnp.log(first / second),
            first * (jnp.log(first) - jnp.log(second)),
            first * jnp.log(first / second) - first + second,
        )
        """,
    ),
    "planck": (
        "Compute spectral radiances",
        """
        choose(
            x**3 / jnp.expm1(x),
            x**3 / jnp.expm1(x / rate),
            1.0 / jnp.expm1(x),
            x / jnp.expm1(x),
        )
        """,
    ),
    "information": (
        "Compute information in bits",
        """
        choose(-jnp.log2(p + 0.01), jnp.log2(1.0 + x / reference), rate * jnp.log2(1.0 + x))
        """,
    ),
    "acidity": (
        "Compute pH values",
        """
        choose(rate + jnp.log10(x / reference), -jnp.log10(x), 10.0 ** (-x), 7.0 - jnp.log10(x))
        """,
    ),
    "log_mean": (
        "Compute logarithmic means",
        """
        choose(
            jnp.sqrt(x * reference),
            jnp.exp(0.5 * (jnp.log(x) + jnp.log(reference))),
            2.0 / (1.0 / x + 1.0 / reference),
            jnp.logaddexp(x, reference),
            jnp.logaddexp2(x, reference),
        )
        """,
    ),
    "power_law": (
        "Evaluate a power law",
        """
        choose(
            rate * x ** (-1.5),
            x ** (-rate),
            rate * x ** (1.0 / 3.0),
            (x / reference) ** rate,
            jnp.power(x, signal),
        )
        """,
    ),
}


@template("logarithms and powers", "math", 9)
def NAME(
    x: F[S, "positive"],
    reference: F[S[K:], "positive"],
    p: F[S, "uniform"],
    q: F[S[K:], "uniform"],
    signal: F[S],
    rate: F[(), "positive"],
):
    """TITLE."""
    S = shape(0, 3)
    K = choose(0, 0, between(0, len(S)))
    OFTEN = ["cube_root", "cube_root", "cube_root", "half_life", "half_life", "octaves"]
    NAME = choose(*LOGARITHMS_AND_POWERS, *OFTEN)
    TITLE, LINES = LOGARITHMS_AND_POWERS[NAME]
    z: F[S] = formula(LINES)
    return more(z, most=2, style="quantity")
