"""Templates that draw random numbers from a key."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("sampling", "random numbers", 4)
def sample_FIRST_and_SECOND(key: KEY, scale: F[choose((), S)]):
    """Combine draws from FIRST and SECOND distributions."""
    S, SPLIT = shape(0, 3, 16), choose("split", "fold", "index")
    KINDS = ["normal", "uniform", "gumbel", "exponential", "laplace", "range"]
    WIDER = [
        *"truncated_normal logistic rademacher rayleigh maxwell gamma beta weibull_min".split(),
        *"triangular chisquare t cauchy pareto wald lognormal double_sided_maxwell".split(),
        "generalized_normal",
    ]
    OPTIONS = {
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
        FUNCTION, BEFORE, AFTER = OPTIONS.get(NAME, (NAME, "", ""))
        WHERE = "first_key" if NAME == FIRST else "second_key"
        DRAW = f"jax.random.{FUNCTION}({WHERE}, {BEFORE}{S}, jnp.{F}{AFTER})"
        draws_NAME: F[S] = jnp.arcsinh(DRAW) if NAME in WIDER else DRAW
        values_NAME: F[S] = mapped(draws_NAME)
    y: F[S] = choose(binary(values_FIRST, values_SECOND), values_FIRST)
    z: F[S] = choose(scale * y, y + scale, y * jnp.tanh(scale), y - 0.5 * scale)
    return more(z, most=3)


@template("discrete sampling", "random numbers", 3)
def draw_KIND(key: KEY, weights: W[S]):
    """Draw KIND values and weight them."""
    S = shape(0, 3, 12)
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
    numbers: W[S] = number(draws, W)
    y: W[S] = choose(weights * numbers + 0.1 * numbers, weights + 0.5 * numbers, numbers - weights)
    return more(y)


@template("dropout and noise", "random numbers", 3)
def dropout_and_KIND_noise(key: KEY, x: F[S]):
    """Drop activations at rate RATE and add KIND noise."""
    S, RATE, SIGMA = shape(1, 3, 16), choose(0.1, 0.2, 0.5), choose(0.1, 0.01, 0.3)
    KIND, MASK = choose("normal", "uniform", "gumbel", "laplace"), choose(S, S, S[-1:])
    mask_key, noise_key = jax.random.split(key)
    keep = jax.random.bernoulli(mask_key, 1.0 - RATE, MASK)
    inner: F[S] = choose(mapped(x, 2), prepared(x))
    kept = jnp.where(keep, inner / (1.0 - RATE), 0.0)
    noise = jax.random.KIND(noise_key, S, jnp.F)
    y: F[S] = choose(kept + SIGMA * noise, kept * (1.0 + SIGMA * noise))
    return more(y, x)


@template("simulation", "random numbers", 3)
def KIND_of_N_steps(key: KEY, x: W[S]):
    """Simulate N steps (KIND)."""
    S, N, SIGMA = shape(0, 1, 12), between(4, 24), choose(0.1, 0.3, 0.5)
    RATE = choose(0.05, 0.1, 0.2)
    KIND = choose("walk", "langevin", "metropolis", "estimate", "ornstein")
    NOISE = choose("normal", "uniform", "laplace", "gumbel")
    if KIND == "estimate":
        noise = jax.random.NOISE(key, (N, *S), jnp.W)
        shifted: W[N, S] = x + noise
        values: W[N, S] = mapped(shifted, 3)
        y: W[S] = reduced(values, axis=0)
        return more(y, x, most=3)

    def advance(value, step_key):
        noise = jax.random.NOISE(step_key, S, jnp.W)
        if KIND == "walk":
            value = value + SIGMA * noise
        elif KIND == "ornstein":
            value = value - RATE * value + SIGMA * noise
        elif KIND == "langevin":
            drift = choose(jnp.sin(value), jnp.tanh(value), value / (1.0 + value**2))
            value = value - RATE * drift + SIGMA * noise
        else:
            proposal = value + SIGMA * noise
            ratio = jnp.exp(0.1 * (jnp.abs(value) - jnp.abs(proposal)))
            value = value + jnp.minimum(ratio, 1.0) * (proposal - value)
        return value, choose(value, jnp.square(value), jnp.tanh(value))

    final, path = lax.scan(advance, x, jax.random.split(key, N))
    if chance(0.3):
        return final, path
    y: W[S] = choose(
        final - jnp.mean(path, axis=0), final * jnp.cos(path[0]), jnp.max(path, axis=0) + final
    )
    return more(y, x, most=3)


@template("shuffling", "random numbers", 6)
def random_KIND(key: KEY, x: W[N]):
    """Draw random numbers for given values."""
    N, K = size(3, 16), between(1, 3)
    KIND = choose(
        *"permutation choice categorical dirichlet multivariate ball orthogonal gumbel_top".split(),
        *"generator generator generator key_data clone wrapped_key".split(),
    )
    if KIND == "permutation":
        order = choose(jax.random.permutation(key, x), x[jax.random.permutation(key, N)])
        y: W[N] = order * jnp.arange(N, dtype=jnp.W) / 4.0
    elif KIND == "choice":
        picked = choose(
            jax.random.choice(key, x, (K,)), jax.random.choice(key, x, (K,), replace=False)
        )
        y: W[K] = picked + 0.1 * jnp.mean(x)
    elif KIND == "categorical":
        place = jax.random.categorical(key, x, shape=(8,))
        y: W[8] = x[place] + 0.1 * place.astype(jnp.W)
    elif KIND == "dirichlet":
        label("own-derivative")  # that of the distribution, not of its rejection sampler
        y: W[N] = jax.random.dirichlet(key, jnp.exp(jnp.tanh(x)), dtype=jnp.W) * 2.0 + 0.1 * x
    elif KIND == "multivariate":
        y: W[N] = jax.random.multivariate_normal(key, x, jnp.eye(N, dtype=jnp.W))
    elif KIND == "ball":
        y: W[N] = x + jax.random.ball(key, N, dtype=jnp.W)
    elif KIND == "orthogonal":
        y: W[N] = jax.random.orthogonal(key, N, dtype=jnp.W) @ x
    elif KIND == "gumbel_top":
        noise = jax.random.gumbel(key, (N,), jnp.W)
        y: W[3] = lax.top_k(x + noise, 3)[0]
    elif KIND == "generator":
        raw = jax.random.bits(key, (4,), jnp.uint32)
        _, bits = lax.rng_bit_generator(raw, (N,), dtype=jnp.uint32)
        y: W[N] = x * (bits % 16).astype(jnp.W) / 4.0
    elif KIND == "key_data":
        low = (jax.random.key_data(key)[1] % 3).astype(jnp.W)
        y: W[N] = x * (low + 1.0)
    elif KIND == "clone":
        y: W[N] = x + jax.random.normal(jax.random.clone(key), (N,), jnp.W)
    else:
        again = jax.random.wrap_key_data(jax.random.key_data(key) + jnp.uint32(1))
        y: W[N] = x * jax.random.uniform(again, (N,), jnp.W)
    return more(y)


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
    FACTOR = 50.0 if KIND in ("uniform", "truncated_normal") else 1.5
    y: F[B, M] = FACTOR * (x @ weights)
    return more(y)
