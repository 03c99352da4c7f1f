"""Templates of forms that lose accuracy, or whose gradient is not finite: JX405, JX417, JX418.

And of programs that cost tracing or compiling, or surprise a caller: JX104, JX209, JX3, JX412.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("jx405 masked", "numerics")
def NAME_values(x: F32[S]):
    """Guard a function by a mask."""
    S, NAME = shape(1, 2, 48), choose("masked", "guarded", "positive")
    z = settled(x)
    y: F32[S] = jnp.where(z > 0, choose(jnp.sqrt(z), jnp.log(z)), choose(0.0, 1.0))
    return settled(y)


@template("jx417 logsumexp", "numerics")
def NAME_of_rows(logits: F32[N, M]):
    """Add up in log space."""
    N, M, A = size(4, 48), size(4, 48), choose(-1, 0, 1)
    NAME = choose("log_partition", "soft_maximum", "evidence")
    z = settled(logits)
    y: F32[N] = choose(
        jnp.log(jnp.sum(jnp.exp(z), axis=A)), jnp.log(jnp.sum(jnp.exp(z), axis=A, keepdims=True))
    )
    return settled(y)


@template("jx417 log softmax", "numerics")
def NAME_of_scores(scores: F32[N, M]):
    """Compute log probabilities."""
    N, M, NAME = size(4, 48), size(4, 48), choose("log_probabilities", "log_policy")
    z = settled(scores)
    if chance(0.5):
        probabilities = jax.nn.softmax(z, axis=-1)
        y: F32[N, M] = jnp.log(probabilities)
    else:
        y: F32[N, M] = jnp.log(jax.nn.softmax(z, axis=choose(0, -1)))
    return settled(y)


@template("jx418 distances", "numerics")
def NAME_of_points(points: F32[N, D], origin: F32[N, D]):
    """Differentiate distances."""
    N, D, NAME = size(3, 24), choose((), 2, 3), choose("forces", "repulsion", "pull")
    z = settled(points)

    def energy(p):
        if D == ():
            d = choose(jnp.linalg.norm(p - origin), jnp.sqrt(jnp.sum((p - origin) ** 2)))
        else:
            d = choose(
                jnp.linalg.norm(p - origin, axis=-1), jnp.sqrt(jnp.sum((p - origin) ** 2, axis=-1))
            )
        return choose(jnp.sum(d), jnp.mean(d), 0.5 * jnp.sum(d))

    return jax.grad(energy)(z)


@template("jx209 unrolled", "programs")
def NAME_TIMES_times(x: F32[N], weights: F32[N, N]):
    """Apply a layer TIMES times."""
    N, TIMES, NAME = size(8, 48), between(17, 32), choose("iterate", "relax", "power_steps")
    state = settled(x)
    for i in range(TIMES):
        state = choose(
            jnp.tanh(state @ weights), jnp.sin(state @ weights) * i, jnp.cos(state @ weights + i)
        )
    return state


@template("jx301 weak", "programs")
def NAME_of_level(x: F32[()]):
    """Choose one of two numbers."""
    LOW, HIGH, NAME = between(0, 5) / 2, between(6, 20) / 2, choose("bonus", "rate", "penalty")
    return jnp.where(choose(x > LOW, jnp.sin(x) > 0, jnp.abs(x) < HIGH), LOW, HIGH)


@template("jx303 recreated", "programs")
def NAME_call(x: F32[S]):
    """Jit a function and call it."""
    S, K, NAME = shape(1, 2, 48), between(1, 9), choose("compiled", "fast", "jitted")
    z = settled(x)
    y: F32[S] = choose(
        jax.jit(lambda v: v + K)(z),
        jax.jit(lambda v: jnp.sin(v) * K)(z),
        jax.jit(lambda v: v**2 - K)(z),
        jax.jit(lambda v: jnp.tanh(v / K))(z),
    )
    return settled(y)


@template("jx412 dead", "programs")
def NAME_rows(x: F32[N, M]):
    """Compute more than is returned."""
    N, M, NAME = size(4, 48), size(4, 48), choose("forget", "pass_on", "normalize")

    z = settled(x)
    statistics = choose(jnp.sin(z), jax.nn.logsumexp(z, axis=-1), jnp.exp(z))
    unread(statistics)
    y: F32[N, M] = z - jnp.mean(z)
    return settled(y)
