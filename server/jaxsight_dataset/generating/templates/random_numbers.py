"""Templates that draw random numbers from a key."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

DISTRIBUTIONS = {
    "truncated_normal": "-2.0, 2.0, ",
    "gamma": "2.0, ",
    "beta": "2.0, 3.0, ",
    "triangular": "-1.0, 0.0, 2.0, ",
    "weibull_min": "1.0, 2.0, ",
    "generalized_normal": "1.5, ",
    **dict.fromkeys(("normal", "uniform", "gumbel", "exponential", "laplace"), ""),
    **dict.fromkeys(("logistic", "rademacher", "maxwell"), ""),
}
"""Functions of distributions, with the arguments between the key and the shape."""

DRAWS = {
    "permute": (
        "Permute values at random",
        """
        order = choose(jax.random.permutation(key, x), x[jax.random.permutation(key, N)])
        choose(order - x, order * x, jnp.cumsum(order), jnp.where(order > x, order, 0.1 * x))
        """,
    ),
    "dirichlet_shares": (
        "Draw shares from a Dirichlet distribution",
        """
        shares = jax.random.dirichlet(key, jax.nn.softplus(x) + 0.5, dtype=jnp.W)
        choose(shares * x, shares - jax.nn.softmax(x), shares)
        """,
    ),
    "rotate_randomly": (
        "Rotate a vector at random",
        """
        rotation = jax.random.orthogonal(key, N, dtype=jnp.W)
        choose(rotation @ x, rotation.T @ x, x - rotation @ x)
        """,
    ),
    "bit_generator": (
        "Use the bits of a generator",
        """
        raw = jax.random.bits(key, (4,), jnp.uint32)
        _, bits = lax.rng_bit_generator(raw, (N,), dtype=jnp.uint32)
        uniform = (bits >> 8).astype(jnp.W) / 2**24
        choose(x * uniform, x - jnp.log(uniform + 1e-3), jnp.where(uniform < 0.5, x, 0.1 * x))
        """,
    ),
    "key_words": (
        "Derive an offset from the data of a key",
        """
        word = jax.random.key_data(key)[1]
        choose(x * (word % 13 + 1).astype(jnp.W), x - (word & 255).astype(jnp.W) / 255.0)
        """,
    ),
    "draw_again": (
        "Draw from another key with the same data",
        """
        words = jax.random.key_data(key) + jnp.uint32(1)
        again = choose(jax.random.clone(key), jax.random.wrap_key_data(words))
        draws = choose(jax.random.normal, jax.random.uniform)(again, (N,), jnp.W)
        choose(x + draws, x * draws, x - 0.1 * draws)
        """,
    ),
}
"""Titles and lines of what is drawn for the values of a vector."""


@template("sampling", "random numbers", 4)
def sample_FIRST_and_SECOND(key: KEY, scale: F[choose((), S)]):
    """Combine draws from FIRST and SECOND distributions."""
    S = shape(1, 3, 16)
    KINDS = list(DISTRIBUTIONS) if F in ("float32", "float64") else ["normal", "uniform", "gumbel"]
    FIRST, SECOND = sample(KINDS, 2)
    if chance(0.5):
        first_key, second_key = jax.random.split(key)
    else:
        first_key = jax.random.fold_in(key, between(0, 9))
        second_key = jax.random.fold_in(key, 10)
    for NAME in (FIRST, SECOND):
        KEY_OF, BEFORE = "first_key" if NAME == FIRST else "second_key", DISTRIBUTIONS[NAME]
        DRAW = f"jax.random.{NAME}({KEY_OF}, {BEFORE}{S}, jnp.{F})"
        draws_NAME: F[S] = DRAW
    y: F[S] = choose(
        draws_FIRST + scale * draws_SECOND,
        scale * (draws_FIRST - draws_SECOND),
        draws_FIRST * (scale + draws_SECOND),
        jnp.where(scale > choose(0.0, 0.5), draws_FIRST, draws_SECOND),
        scale * (1.0 + draws_FIRST),
        jnp.maximum(draws_FIRST, scale),
        jnp.minimum(draws_FIRST, draws_SECOND) + scale,
        scale * jnp.square(draws_FIRST),
    )
    return more(y, most=2)


@template("discrete sampling", "random numbers", 3)
def draw_KIND(key: KEY, weights: W[S]):
    """Draw KIND values and weight them."""
    S = shape(1, 3, 12)
    KIND = choose("bernoulli", "randint", "bits", "poisson", "categorical", "geometric")
    CALL = {
        "bernoulli": f"jax.random.bernoulli(key, 0.4, {S})",
        "randint": f"jax.random.randint(key, {S}, 0, 12, jnp.int32)",
        "poisson": f"jax.random.poisson(key, 3.0, {S})",
        "categorical": f"jax.random.categorical(key, jnp.zeros(5), shape={S})",
        "geometric": f"jax.random.geometric(key, 0.4, {S}, jnp.int32)",
        "bits": f"jax.random.bits(key, {S}, jnp.uint32)",
    }[KIND]
    draws: U32[S] = CALL
    numbers: W[S] = number(draws, W) if KIND == "bits" else draws.astype(jnp.W)
    y: W[S] = choose(weights * numbers, weights + numbers, weights / (1.0 + numbers))
    return more(y, most=2)


@template("dropout and noise", "random numbers", 3)
def dropout_and_KIND_noise(key: KEY, x: F[S]):
    """Drop activations at rate RATE and add KIND noise."""
    S, RATE, SIGMA = shape(1, 3, 16), choose(0.1, 0.2, 0.5), choose(0.1, 0.01, 0.3)
    KIND, MASK = choose("normal", "uniform", "gumbel", "laplace"), choose(S, S, S[-1:])
    mask_key, noise_key = jax.random.split(key)
    keep = jax.random.bernoulli(mask_key, 1.0 - RATE, MASK)
    inner: F[S] = choose(activated(x), x, normalised(x))
    kept = choose(jnp.where(keep, inner / (1.0 - RATE), 0.0), keep * inner / (1.0 - RATE))
    noise = jax.random.KIND(noise_key, S, jnp.F)
    y: F[S] = choose(kept + SIGMA * noise, kept * (1.0 + SIGMA * noise), x + kept + SIGMA * noise)
    return more(y, most=2, style="layer")


@template("simulation", "random numbers", 3)
def KIND_of_N_steps(key: KEY, x: W[S]):
    """Simulate N steps (KIND)."""
    S, N, SIGMA, RATE = shape(0, 1, 12), between(4, 24), choose(0.1, 0.3, 0.5), choose(0.05, 0.2)
    KIND = choose("walk", "langevin", "ornstein")
    NOISE = choose("normal", "uniform", "laplace", "gumbel")

    def advance(value, step_key):
        noise = jax.random.NOISE(step_key, S, jnp.W)
        if KIND == "walk":
            value = value + SIGMA * noise
        elif KIND == "ornstein":
            value = value - RATE * (value - choose(0.0, 1.0)) + SIGMA * noise
        else:
            drift = choose(jnp.tanh(value), value - 0.1 * value**3)
            value = value - RATE * drift + SIGMA * noise
        return value, choose(value, jnp.square(value), jnp.mean(value))

    final, path = lax.scan(advance, x, jax.random.split(key, N))
    if chance(0.3):
        return final, path
    return choose(
        final - x,
        jnp.mean(path, axis=0),
        jnp.var(path, axis=0),
        jnp.mean(jnp.square(final - x)),
    )


@template("shuffling", "random numbers", 6)
def NAME(key: KEY, x: W[N]):
    """TITLE."""
    N, K, NAME = size(3, 16), between(1, 3), choose(*DRAWS)
    TITLE, LINES = DRAWS[NAME]
    if NAME == "dirichlet_shares":
        label("own-derivative")  # that of the distribution, not of its rejection sampler
    y: W[N] = formula(LINES)
    return more(y, most=1)
