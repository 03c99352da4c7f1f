"""Templates of formulas of densities and losses.

A formula has a title, and lines of a snippet, whose last one is its value.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

DENSITIES = {
    "normal_log_density": (
        "Evaluate log densities of normal distributions",
        """
        choose(
            -0.5 * z**2 - jnp.log(sigma) - 0.5 * jnp.log(2.0 * jnp.pi),
            jax.scipy.stats.norm.logpdf(x, mean, sigma),
            -0.5 * (jnp.square(z) + 2.0 * jnp.log(sigma) + 1.8379),
            jnp.exp(-0.5 * z**2) / (sigma * jnp.sqrt(2.0 * jnp.pi)),
        )
        """,
    ),
    "normal_cdf": (
        "Evaluate cumulative distributions",
        """
        choose(
            0.5 * (1.0 + lax.erf(z / jnp.sqrt(2.0))),
            jax.scipy.stats.norm.cdf(x, mean, sigma),
            jax.scipy.stats.norm.logcdf(z),
            0.5 * lax.erfc(-z / 1.4142),
        )
        """,
    ),
    "tail": (
        "Compute tails",
        """
        choose(
            0.5 * lax.erfc(z / 1.4142),
            jax.scipy.stats.norm.sf(z),
            lax.erfc(jnp.abs(z)),
            jnp.log(lax.erfc(jnp.abs(z)) + 1e-06),
        )
        """,
    ),
    "gaussian_kl": (
        "Compare two normals",
        """
        ratio = jnp.square(a / sigma)
        choose(
            0.5 * (ratio + jnp.square(z) - 1.0 - jnp.log(ratio)),
            jnp.log(sigma / a) + (a**2 + (x - mean) ** 2) / (2.0 * sigma**2) - 0.5,
        )
        """,
    ),
    "probit": (
        "Apply probit",
        """
        safe = choose(0.01 + 0.98 * p, jnp.clip(p, 0.01, 0.99))
        choose(
            jax.scipy.special.ndtri(safe),
            mean + sigma * jax.scipy.special.ndtri(safe),
            jnp.sqrt(2.0) * lax.erf_inv(2.0 * safe - 1.0),
            lax.erf_inv(2.0 * safe - 1.0),
        )
        """,
    ),
    "poisson_log_mass": (
        "Evaluate log probabilities of counts",
        """
        k = counts.astype(jnp.W)
        choose(
            k * jnp.log(b) - b - lax.lgamma(k + 1.0),
            jax.scipy.stats.poisson.logpmf(counts, b),
            a * jnp.log(b) - b - jax.scipy.special.gammaln(a + 1.0),
            lax.lgamma(a + b) - lax.lgamma(a) - lax.lgamma(b),
        )
        """,
    ),
    "gamma_log_density": (
        "Evaluate log densities",
        """
        choose(
            a * jnp.log(b) - lax.lgamma(a) + (a - 1.0) * jnp.log(sigma) - b * sigma,
            jax.scipy.stats.gamma.logpdf(sigma, a, scale=b),
            jax.scipy.stats.gamma.pdf(b, a),
        )
        """,
    ),
    "beta_log_density": (
        "Evaluate log densities",
        """
        safe = 0.05 + 0.9 * p
        choose(
            jax.scipy.stats.beta.logpdf(safe, a, b),
            (a - 1.0) * jnp.log(safe)
            + (b - 1.0) * jnp.log1p(-safe)
            - jax.scipy.special.betaln(a, b),
        )
        """,
    ),
    "student_log_density": (
        "Evaluate log densities of Student's t",
        """
        choose(
            jax.scipy.stats.t.logpdf(z, a + 1.0),
            -0.5 * (a + 1.0) * jnp.log1p(z**2 / a),
            lax.lgamma(0.5 * (a + 1.0)) - lax.lgamma(0.5 * a) - 0.5 * jnp.log(jnp.pi * a),
        )
        """,
    ),
    "gamma_entropy": (
        "Compute entropies of gamma distributions",
        """
        choose(
            a - jnp.log(b) + lax.lgamma(a) + (1.0 - a) * lax.digamma(a),
            jnp.log(a) - lax.digamma(a),
            (a - b) * lax.digamma(a) - lax.lgamma(a) + lax.lgamma(b),
        )
        """,
    ),
    "dirichlet_mean_log": (
        "Compute expectations of logarithms",
        """
        choose(
            lax.digamma(a) - lax.digamma(a + b),
            jnp.exp(lax.digamma(a)),
            jax.scipy.special.digamma(a) - jnp.log(b),
            lax.digamma(a + 1.0) + 0.5772,
        )
        """,
    ),
    "von_mises_log_density": (
        "Evaluate log densities on the circle",
        """
        log_scale = jnp.log(jax.scipy.special.i0e(b)) + b
        choose(
            b * jnp.cos(x - mean) - log_scale,
            jax.scipy.special.i1e(a) / jax.scipy.special.i0e(a),
            b * (jnp.cos(x - mean) - 1.0) - jnp.log(2.0 * jnp.pi * jax.scipy.special.i0e(b)),
        )
        """,
    ),
    "rician": (
        "Evaluate log densities",
        """
        choose(
            jnp.log(a / b**2) - 0.5 * (a - b) ** 2 + jnp.log(jax.scipy.special.i0e(a * b)),
            a * jax.scipy.special.i0e(a * b) * jnp.exp(-0.5 * (a - b) ** 2),
            jax.scipy.special.i1e(a * b) * a,
        )
        """,
    ),
    "black_scholes": (
        "Price call options",
        """
        spread = sigma * jnp.sqrt(a)
        d1 = (jnp.log(a / b) + 0.5 * sigma**2 * a) / spread
        d2 = d1 - spread
        a * jax.scipy.stats.norm.cdf(d1) - b * choose(
            jax.scipy.stats.norm.cdf(d2), jnp.exp(-0.05 * a) * jax.scipy.stats.norm.cdf(d2)
        )
        """,
    ),
    "expected_improvement": (
        "Compute improvements",
        """
        sigma * (
            z * jax.scipy.stats.norm.cdf(z)
            + choose(jax.scipy.stats.norm.pdf(z), jnp.exp(-0.5 * z**2) / jnp.sqrt(2.0 * jnp.pi))
        )
        """,
    ),
    "laplace_log_density": (
        "Evaluate log densities",
        """
        choose(
            -jnp.abs(x - mean) / sigma - jnp.log(2.0 * sigma),
            jax.scipy.stats.laplace.logpdf(x, mean, sigma),
            -jnp.log(jnp.pi * sigma * (1.0 + z**2)),
            -z - jnp.log(sigma) - 2.0 * jax.nn.softplus(-z),
        )
        """,
    ),
}


@template("densities", "math", 9)
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
    S = shape(0, 3)
    K = choose(0, 0, between(0, len(S)))
    z = choose((x - mean) / sigma, (x - mean) * (1.0 / sigma))
    OFTEN = ["von_mises_log_density", "von_mises_log_density", "rician", "rician"]
    NAME = choose(*DENSITIES, *OFTEN, "dirichlet_mean_log", "gamma_entropy")
    TITLE, LINES = DENSITIES[NAME]
    y: W[S] = formula(LINES)
    return more(y, most=2, style="quantity")


ELEMENTWISE_LOSSES = {
    "logistic": """
        choose(
            jax.nn.softplus(logits) - labels * logits,
            -labels * jax.nn.log_sigmoid(logits) - (1.0 - labels) * jax.nn.log_sigmoid(-logits),
            jnp.maximum(logits, 0.0) - logits * labels + jnp.log1p(jnp.exp(-jnp.abs(logits))),
        )
        """,
    "focal": """
        p = jax.nn.sigmoid(logits)
        hit = p * labels + (1.0 - p) * (1.0 - labels)
        -((1.0 - hit) ** choose(2, 3)) * jnp.log(hit + 0.001)
        """,
    "hinge": """
        margins = choose(labels * logits, logits - scores)
        choose(
            jnp.maximum(0.0, 1.0 - margins),
            jax.nn.relu(1.0 - margins),
            jnp.square(jnp.maximum(0.0, 1.0 - margins)),
            jax.nn.relu(0.5 + margins),
        )
        """,
    "huber": """
        size_of = jnp.abs(error)
        small = jnp.minimum(size_of, 1.0)
        choose(
            0.5 * small**2 + (size_of - small),
            jnp.where(size_of < 1.0, 0.5 * error**2, size_of - 0.5),
            jnp.where(size_of < 0.5, error**2, size_of - 0.25),
        )
        """,
    "quantile": """
        TAU = choose(0.1, 0.5, 0.9)
        choose(jnp.maximum(TAU * error, (TAU - 1.0) * error), error * (TAU - (error < 0.0)))
        """,
    "poisson": """
        choose(
            jnp.exp(logits) - labels * logits,
            jax.nn.softplus(logits) - labels * jnp.log1p(labels),
        )
        """,
    "squared": """
        choose(
            0.5 * error**2, jnp.square(error), weights * jnp.square(error), error**2 / weights
        )
        """,
    "tukey": """
        inside = jnp.clip(1.0 - (error / 4.0) ** 2, 0.0, 1.0)
        choose(1.0 - inside**3, weights * (1.0 - inside**3))
        """,
    "cauchy": """
        choose(jnp.log1p(error**2), 0.5 * jnp.log1p(jnp.square(error) / weights))
        """,
    "brier": """
        jnp.square(choose(jax.nn.sigmoid(logits), jax.nn.sigmoid(scores)) - labels)
        """,
    "log_cosh": """
        choose(
            error + jax.nn.softplus(-2.0 * error) - 0.6931, jnp.log(jnp.cosh(jnp.tanh(error)))
        )
        """,
    "soft_margin": """
        choose(jax.nn.softplus(-labels * logits), -jax.nn.log_sigmoid(labels * logits))
        """,
    "exponential": """
        choose(
            jnp.exp(-jnp.tanh(labels) * jnp.tanh(logits)), jnp.expm1(jnp.abs(jnp.tanh(error)))
        )
        """,
    "contrastive": """
        gap = jnp.abs(logits - scores)
        jnp.where(labels > 0.0, gap**2, jnp.maximum(0.0, 1.0 - gap) ** 2)
        """,
    "charbonnier": """
        choose(jnp.sqrt(error**2 + 0.01), jnp.sqrt(1.0 + (error / 0.5) ** 2) - 1.0)
        """,
    "epsilon": """
        choose(
            jnp.maximum(jnp.abs(error) - 0.1, 0.0),
            jnp.square(jax.nn.relu(jnp.abs(error) - 0.1)),
        )
        """,
}


@template("elementwise losses", "math", 3)
def NAME_loss(logits: F[S], labels: F[S, RULE], scores: F[S], weights: F[S[K:], "positive"]):
    """Compute the NAME loss of each element."""
    S = shape(1, 3)
    K = choose(0, 0, between(0, len(S)))
    NAME = choose(*ELEMENTWISE_LOSSES)
    RULE = "uniform" if NAME in ("logistic", "focal", "poisson", "brier") else "normal"
    error = choose(logits - labels, labels - logits)
    losses: F[S] = formula(ELEMENTWISE_LOSSES[NAME])
    if chance(0.3):
        weighted: F[S] = weights * losses
        return choose(jnp.mean(weighted), jnp.sum(weighted, axis=-1))
    return more(losses, most=2, style="quantity")
