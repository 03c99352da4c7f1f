"""Templates that draw random numbers from a key."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

DISTRIBUTIONS = {
    "range": ("uniform", "", ", -2.0, 2.0"),
    "truncated_normal": ("truncated_normal", "-2.0, 2.0, ", ""),
    "rayleigh": ("rayleigh", "1.5, ", ""),
    "gamma": ("gamma", "2.0, ", ""),
    "beta": ("beta", "2.0, 3.0, ", ""),
    "weibull_min": ("weibull_min", "1.0, 2.0, ", ""),
    "triangular": ("triangular", "-1.0, 0.0, 2.0, ", ""),
    "chisquare": ("chisquare", "3.0, ", ""),
    "t": ("t", "4.0, ", ""),
    "pareto": ("pareto", "2.0, ", ""),
    "wald": ("wald", "1.0, ", ""),
    "lognormal": ("lognormal", "0.5, ", ""),
    "double_sided_maxwell": ("double_sided_maxwell", "0.0, 1.0, ", ""),
    "generalized_normal": ("generalized_normal", "1.5, ", ""),
}
"""Functions of distributions, with arguments before and after the shape and the dtype."""

DRAWS = {
    "permute": (
        "Permute values at random",
        """
        order = choose(jax.random.permutation(key, x), x[jax.random.permutation(key, N)])
        choose(order - x, order * x, jnp.cumsum(order), jnp.where(order > x, order, 0.1 * x))
        """,
    ),
    "subsample": (
        "Choose some of the values at random",
        """
        picked = choose(
            jax.random.choice(key, x, (K,)),
            jax.random.choice(key, x, (K,), replace=False),
            jax.random.choice(key, x, (K,), p=jax.nn.softmax(x)),
        )
        choose(picked - jnp.mean(x), picked, jnp.sort(picked))
        """,
    ),
    "sample_categories": (
        "Sample categories by their logits",
        """
        place = jax.random.categorical(key, x, shape=(8,))
        choose(x[place], jax.nn.log_softmax(x)[place], x[place] - jnp.mean(x))
        """,
    ),
    "dirichlet_shares": (
        "Draw shares from a Dirichlet distribution",
        """
        concentration = choose(jax.nn.softplus(x) + 0.5, jnp.exp(jnp.tanh(x)))
        shares = jax.random.dirichlet(key, concentration, dtype=jnp.W)
        choose(shares * x, shares - jax.nn.softmax(x), shares)
        """,
    ),
    "multivariate_sample": (
        "Draw from a multivariate normal distribution",
        """
        covariance = choose(jnp.eye(N, dtype=jnp.W), 0.5 * jnp.eye(N, dtype=jnp.W) + 0.1)
        choose(
            jax.random.multivariate_normal(key, x, covariance),
            x - jax.random.multivariate_normal(key, jnp.zeros_like(x), covariance),
        )
        """,
    ),
    "perturb_in_ball": (
        "Move a point inside of a ball",
        """
        offset = jax.random.ball(key, N, dtype=jnp.W)
        choose(x + offset, x - choose(0.1, 0.5) * offset)
        """,
    ),
    "rotate_randomly": (
        "Rotate a vector at random",
        """
        rotation = jax.random.orthogonal(key, N, dtype=jnp.W)
        choose(rotation @ x, rotation.T @ x, x - rotation @ x)
        """,
    ),
    "gumbel_top": (
        "Choose values by the Gumbel trick",
        """
        noisy = x + choose(1.0, 0.5) * jax.random.gumbel(key, (N,), jnp.W)
        choose(lax.top_k(noisy, 3)[0], x[lax.top_k(noisy, 3)[1]], jax.nn.softmax(noisy / 0.5))
        """,
    ),
    "bit_generator": (
        "Use the bits of a generator",
        """
        raw = jax.random.bits(key, (4,), jnp.uint32)
        _, bits = lax.rng_bit_generator(raw, (N,), dtype=jnp.uint32)
        uniform = (bits >> 8).astype(jnp.W) / 2**24
        choose(
            x * uniform, x + uniform, jnp.where(uniform < 0.5, x, 0.1 * x),
            x - jnp.log(uniform + 1e-3),
            x * jnp.sqrt(-2.0 * jnp.log(uniform + 1e-3)), x + 0.1 * (uniform - 0.5),
            jnp.where(uniform < jax.nn.sigmoid(x), x, -x),
        )
        """,
    ),
    "key_words": (
        "Derive an offset from the data of a key",
        """
        word = jax.random.key_data(key)[1]
        choose(
            x * (word % 13 + 1).astype(jnp.W), x + (word >> 8).astype(jnp.W) / 2**24,
            x - (word & 255).astype(jnp.W) / 255.0,
        )
        """,
    ),
    "cloned_key": (
        "Draw again from a key",
        """
        draws = choose(jax.random.normal, jax.random.uniform)(jax.random.clone(key), (N,), jnp.W)
        choose(x + draws, x * draws, x - 0.1 * draws)
        """,
    ),
    "wrapped_key": (
        "Draw from a key made of another one's data",
        """
        again = jax.random.wrap_key_data(jax.random.key_data(key) + jnp.uint32(1))
        draws = choose(jax.random.uniform, jax.random.normal)(again, (N,), jnp.W)
        choose(x * draws, x + draws, x + 0.5 * draws)
        """,
    ),
}
"""Titles and lines of what is drawn for the values of a vector."""


@template("sampling", "random numbers", 4)
def sample_FIRST_and_SECOND(key: KEY, scale: F[choose((), S)]):
    """Combine draws from FIRST and SECOND distributions."""
    S, SPLIT = shape(1, 3, 16), choose("split", "fold", "index")
    KINDS = ["normal", "uniform", "gumbel", "exponential", "laplace", "range"]
    WIDER = [
        *"truncated_normal logistic rademacher rayleigh maxwell gamma beta weibull_min".split(),
        *"triangular chisquare t cauchy pareto wald lognormal double_sided_maxwell".split(),
        "generalized_normal",
    ]
    HEAVY = ("t", "cauchy", "pareto", "lognormal", "double_sided_maxwell")
    FIRST, SECOND = sample([*KINDS, *(WIDER if F in ("float32", "float64") else [])], 2)
    if SPLIT == "split":
        first_key, second_key = jax.random.split(key)
    elif SPLIT == "fold":
        first_key = jax.random.fold_in(key, between(0, 9))
        second_key = jax.random.fold_in(key, 10)
    else:
        keys = jax.random.split(key, 3)
        first_key = keys[0]
        second_key = keys[2]
    for NAME in (FIRST, SECOND):
        FUNCTION, BEFORE, AFTER = DISTRIBUTIONS.get(NAME, (NAME, "", ""))
        WHERE = "first_key" if NAME == FIRST else "second_key"
        DRAW = f"jax.random.{FUNCTION}({WHERE}, {BEFORE}{S}, jnp.{F}{AFTER})"
        draws_NAME: F[S] = choose(jnp.clip(DRAW, -9.0, 9.0), DRAW) if NAME in HEAVY else DRAW
    KIND = choose("sum", "product", "mixture", "noise", "single", "max", "both")
    if KIND == "sum":
        y: F[S] = choose(draws_FIRST + scale * draws_SECOND, scale * (draws_FIRST - draws_SECOND))
    elif KIND == "product":
        y: F[S] = choose(scale * draws_FIRST * draws_SECOND, draws_FIRST * (scale + draws_SECOND))
    elif KIND == "mixture":
        y: F[S] = jnp.where(scale > choose(0.0, 0.5), draws_FIRST, draws_SECOND)
    elif KIND == "noise":
        y: F[S] = choose(
            scale + draws_FIRST, scale + 0.1 * draws_FIRST, scale * (1.0 + draws_FIRST)
        )
    elif KIND == "max":
        y: F[S] = choose(
            jnp.maximum(draws_FIRST, scale), jnp.minimum(draws_FIRST, draws_SECOND) + scale
        )
    elif KIND == "both":
        return choose(
            (scale * draws_FIRST, scale + draws_SECOND),
            (scale + draws_FIRST, jnp.mean(draws_SECOND)),
        )
    else:
        y: F[S] = choose(scale * draws_FIRST, scale * jnp.square(draws_FIRST))
    return more(y, most=2)


@template("discrete sampling", "random numbers", 3)
def draw_KIND(key: KEY, weights: W[S]):
    """Draw KIND values and weight them."""
    S = shape(1, 3, 12)
    KIND = choose("bernoulli", "randint", "bits", "poisson", "categorical", "geometric", "binomial")
    if KIND == "bernoulli":
        draws: BOOL[S] = jax.random.bernoulli(key, 0.4, S)
    elif KIND == "randint":
        draws: I32[S] = jax.random.randint(key, S, 0, 12, jnp.int32)
    elif KIND == "bits":
        draws: U32[S] = jax.random.bits(key, S, jnp.uint32)
    elif KIND == "poisson":
        draws: I64[S] = jax.random.poisson(key, 3.0, S)
    elif KIND == "categorical":
        draws: I64[S] = jax.random.categorical(key, jnp.zeros(5), shape=S)
    elif KIND == "geometric":
        draws: I32[S] = jax.random.geometric(key, 0.4, S, jnp.int32)
    else:
        draws: F64[S] = jax.random.binomial(key, 6.0, 0.4, S)
    numbers: W[S] = number(draws, W) if KIND == "bits" else draws.astype(jnp.W)
    y: W[S] = choose(
        weights * numbers, weights + numbers, numbers - weights, weights / (1.0 + numbers)
    )
    return more(y, most=2)


@template("dropout and noise", "random numbers", 3)
def dropout_and_KIND_noise(key: KEY, x: F[S]):
    """Drop activations at rate RATE and add KIND noise."""
    S, RATE, SIGMA = shape(1, 3, 16), choose(0.1, 0.2, 0.5), choose(0.1, 0.01, 0.3)
    KIND, MASK = choose("normal", "uniform", "gumbel", "laplace"), choose(S, S, S[-1:])
    mask_key, noise_key = jax.random.split(key)
    keep = jax.random.bernoulli(mask_key, 1.0 - RATE, MASK)
    inner: F[S] = choose(activated(x), x, normalised(x))
    kept = choose(
        jnp.where(keep, inner / (1.0 - RATE), 0.0), keep * inner / (1.0 - RATE), inner * keep
    )
    noise = jax.random.KIND(noise_key, S, jnp.F)
    y: F[S] = choose(
        kept + SIGMA * noise,
        kept * (1.0 + SIGMA * noise),
        x + kept + SIGMA * noise,
        jnp.where(keep, inner, SIGMA * noise),
    )
    return more(y, most=2, style="layer")


@template("simulation", "random numbers", 3)
def KIND_of_N_steps(key: KEY, x: W[S]):
    """Simulate N steps (KIND)."""
    S, N, SIGMA = shape(0, 1, 12), between(4, 24), choose(0.1, 0.3, 0.5)
    RATE = choose(0.05, 0.1, 0.2)
    KIND = choose("walk", "langevin", "metropolis", "estimate", "ornstein")
    NOISE = choose("normal", "uniform", "laplace", "gumbel")
    if KIND == "estimate":
        noise = jax.random.NOISE(key, (N, *S), jnp.W)
        samples: W[N, S] = choose(x + noise, x + SIGMA * noise, x * jnp.exp(SIGMA * noise))
        values: W[N, S] = choose(
            mapped(samples, 3), jnp.maximum(samples - 0.5, 0.0), smooth(samples)
        )
        if chance(0.3):
            return jnp.mean(values, axis=0), jnp.std(values, axis=0)
        y: W[S] = choose(
            jnp.mean(values, axis=0),
            jnp.mean(values, axis=0) - values[0],
            jnp.var(values, axis=0),
            jnp.std(values, axis=0) / sqrt(N),
            jnp.quantile(values, 0.9, axis=0),
            jax.nn.logsumexp(values, axis=0),
        )
        return more(y, most=1)

    def advance(value, step_key):
        noise = jax.random.NOISE(step_key, S, jnp.W)
        if KIND == "walk":
            value = value + SIGMA * noise
        elif KIND == "ornstein":
            value = value - RATE * (value - choose(0.0, 1.0)) + SIGMA * noise
        elif KIND == "langevin":
            drift = choose(value, jnp.tanh(value), value / (1.0 + value**2), value - 0.1 * value**3)
            value = value - RATE * drift + SIGMA * noise
        else:
            proposal = value + SIGMA * noise
            ratio = choose(
                jnp.exp(0.5 * (value**2 - proposal**2)), jnp.exp(jnp.abs(value) - jnp.abs(proposal))
            )
            value = value + jnp.minimum(ratio, 1.0) * (proposal - value)
        return value, choose(value, jnp.square(value), jnp.mean(value))

    final, path = lax.scan(advance, x, jax.random.split(key, N))
    if chance(0.3):
        return final, path
    y: W[S] = choose(
        final,
        final - x,
        jnp.mean(path, axis=0),
        jnp.max(path, axis=0),
        jnp.var(path, axis=0),
        jnp.mean(jnp.square(final - x)),
        path,
        jnp.maximum(path[-1] - 0.5, 0.0),
    )
    return y


@template("shuffling", "random numbers", 6)
def NAME(key: KEY, x: W[N]):
    """TITLE."""
    N, K, NAME = size(3, 16), between(1, 3), choose(*DRAWS, "bit_generator", "bit_generator")
    TITLE, LINES = DRAWS[NAME]
    if NAME == "dirichlet_shares":
        label("own-derivative")  # that of the distribution, not of its rejection sampler
    y: W[N] = formula(LINES)
    return more(y, most=1)


@template("initialisation", "random numbers", 2)
def KIND_layer(key: KEY, x: F[B, N]):
    """Apply a layer initialised by KIND."""
    B, N, M = shape(0, 1, 6), size(2, 16), size(2, 16)
    KIND = choose(
        *("lecun_normal", "glorot_uniform", "he_normal", "variance_scaling", "truncated_normal"),
        *("uniform", "orthogonal" if F in ("float32", "float64") else "glorot_normal"),
    )
    if KIND == "variance_scaling":
        initializer = jax.nn.initializers.variance_scaling(1.0, "fan_in", "normal")
    else:
        initializer = jax.nn.initializers.KIND()
    weights = initializer(key, (N, M), jnp.F)
    biases = choose(jnp.zeros(M, jnp.F), jnp.full(M, 0.1, jnp.F))
    y: F[B, M] = choose(x @ weights, x @ weights + biases, jnp.dot(x, weights))
    return more(y, style="layer")
