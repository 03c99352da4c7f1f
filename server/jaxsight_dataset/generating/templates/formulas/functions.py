"""Templates of formulas of angles, logarithms and densities.

A formula has a title, and lines of a snippet, whose last one is its value.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

ANGLES = {
    "great_circle": (
        "Compute central angles",
        """
        half = jnp.sin(0.5 * (x - y)) ** 2 + jnp.cos(x) ** 2 * jnp.sin(0.5 * angle) ** 2
        2.0 * radius * jnp.arcsin(jnp.sqrt(0.99 * jnp.tanh(half) + 0.001))
        """,
    ),
    "bearing": (
        "Compute angles of directions",
        """
        bearing = choose(jnp.arctan2(y, x), jnp.arctan2(jnp.sin(x - y), jnp.cos(x - y)))
        choose(bearing, jnp.rad2deg(bearing), jnp.hypot(x, y) * jnp.cos(2.0 * bearing))
        """,
    ),
    "angle_between": (
        "Compute angles from cosines",
        """
        between_them = choose(jnp.arccos(cosine), jnp.arcsin(cosine))
        choose(between_them, 1.0 - between_them / jnp.pi, radius * between_them)
        """,
    ),
    "projected": (
        "Project latitudes",
        """
        choose(jnp.arcsinh(jnp.tan(angle)), 2.0 * radius * jnp.tan(0.5 * angle))
        """,
    ),
    "hyperbolic_distance": (
        "Compute distances in hyperbolic space",
        """
        gap = choose((angle - cosine) ** 2, jnp.square(x - y))
        choose(jnp.arccosh(1.01 + gap), jnp.arccosh(1.01 + gap / radius) ** 2)
        """,
    ),
    "boosted": (
        "Boost coordinates to a moving frame",
        """
        rapidity = jnp.arctanh(angle)
        choose(
            x * jnp.cosh(rapidity) - y * jnp.sinh(rapidity),
            radius * jnp.sinh(rapidity) / jnp.cosh(rapidity) ** 2,
        )
        """,
    ),
}


@template("angles and distances", "math", 40)
def NAME(
    x: F[S],
    y: F[S],
    angle: F[S, "unit"],
    cosine: F[S, "unit"],
    radius: F[(), "positive"],
):
    """TITLE."""
    OFTEN = "bearing angle_between angle_between projected boosted hyperbolic_distance".split()
    S, NAME = shape(0, 3), choose(*ANGLES, *OFTEN)
    TITLE, LINES = ANGLES[NAME]
    z: F[S] = formula(LINES)
    return more(z, most=2, style="quantity")


LOGARITHMS = {
    "box_cox": (
        "Apply the Box-Cox transformation",
        "choose((x**rate - 1.0) / rate, jnp.expm1(rate * jnp.log(x)) / rate)",
    ),
    "log_odds": (
        "Compute log odds",
        """
        safe = choose(0.01 + 0.98 * p, jnp.clip(p, 0.01, 0.99))
        choose(jnp.log(safe / (1.0 - safe)), jnp.log(safe) - jnp.log1p(-safe) + signal)
        """,
    ),
    "entropy_in_bits": (
        "Compute entropies in bits",
        """
        safe = choose(0.01 + 0.98 * p, jnp.clip(p, 0.01, 0.99))
        choose(
            -safe * jnp.log2(safe) - (1.0 - safe) * jnp.log2(1.0 - safe),
            safe * (jnp.log(safe) - jnp.log(reference)),
        )
        """,
    ),
    "half_life": (
        "Compute what has not decayed",
        "choose(rate * jnp.exp2(-x / reference), 1.0 - jnp.exp2(-x / reference))",
    ),
    "octaves": (
        "Compute intervals in octaves",
        "choose(rate * jnp.exp2(signal / 12.0), jnp.exp2(jnp.log2(x) - jnp.log2(reference)))",
    ),
    "cube_root": (
        "Compute sizes from volumes",
        """
        choose(
            jnp.cbrt(3.0 * x / (4.0 * jnp.pi)), jnp.cbrt(x) - jnp.cbrt(reference),
            rate * jnp.cbrt(x * reference) ** 2,
        )
        """,
    ),
    "mean_of_logarithms": (
        "Compute means in log space",
        "choose(jnp.sqrt(x * reference), jnp.logaddexp(x, signal), jnp.logaddexp2(x, signal))",
    ),
    "power_law": (
        "Evaluate a power law",
        "choose(rate * x ** (-1.5), (x / reference) ** rate, jnp.power(x, signal))",
    ),
}


@template("logarithms and powers", "math", 20)
def NAME(
    x: F[S, "positive"],
    reference: F[S[K:], "positive"],
    p: F[S, "uniform"],
    signal: F[S],
    rate: F[(), "positive"],
):
    """TITLE."""
    S, NAME = shape(0, 3), choose(*LOGARITHMS, "cube_root", "cube_root", "half_life")
    K = choose(0, 0, between(0, len(S)))
    TITLE, LINES = LOGARITHMS[NAME]
    z: F[S] = formula(LINES)
    return more(z, most=2, style="quantity")


DENSITIES = {
    "normal_cdf": (
        "Evaluate cumulative distributions",
        """
        choose(
            0.5 * lax.erfc(-z / 1.4142), jax.scipy.stats.norm.cdf(x, mean, sigma),
            jax.scipy.stats.norm.logcdf(z),
        )
        """,
    ),
    "probit": (
        "Apply probit",
        """
        safe = 0.01 + 0.98 * p
        choose(mean + sigma * jax.scipy.special.ndtri(safe), lax.erf_inv(2.0 * safe - 1.0))
        """,
    ),
    "poisson_log_mass": (
        "Evaluate log probabilities of counts",
        """
        k = counts.astype(jnp.W)
        choose(k * jnp.log(b) - b - lax.lgamma(k + 1.0), jax.scipy.stats.poisson.logpmf(counts, b))
        """,
    ),
    "beta_log_density": (
        "Evaluate log densities",
        """
        safe = 0.05 + 0.9 * p
        choose(
            jax.scipy.stats.beta.logpdf(safe, a, b), jax.scipy.stats.t.logpdf(z, a + 1.0),
            jax.scipy.stats.gamma.logpdf(sigma, a, scale=b),
        )
        """,
    ),
    "gamma_entropy": (
        "Compute entropies of gamma distributions",
        """
        choose(
            a - jnp.log(b) + lax.lgamma(a) + (1.0 - a) * lax.digamma(a),
            lax.digamma(a) - lax.digamma(a + b),
        )
        """,
    ),
    "von_mises_log_density": (
        "Evaluate log densities on the circle",
        """
        ratio = jax.scipy.special.i1e(a) / jax.scipy.special.i0e(a)
        choose(ratio * jnp.cos(x - mean), b * jnp.cos(x - mean) - jnp.log(ratio))
        """,
    ),
}


@template("densities", "math", 20)
def NAME(
    x: W[S],
    mean: W[S[K:]],
    sigma: W[S[K:], "positive"],
    a: W[S, "positive"],
    b: W[S[K:], "positive"],
    p: W[S, "uniform"],
    counts: I32[S, below(9)],
):
    """TITLE."""
    S, NAME = (
        shape(0, 3),
        choose(*DENSITIES, "von_mises_log_density", "gamma_entropy", "normal_cdf"),
    )
    K = choose(0, 0, between(0, len(S)))
    TITLE, LINES = DENSITIES[NAME]
    z = choose((x - mean) / sigma, (x - mean) * (1.0 / sigma))
    y: W[S] = formula(LINES)
    return more(y, most=2, style="quantity")
