"""Templates of derivatives."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("gradient of a loss", "gradients", 4)
def gradient_of_LOSS(params: F[S], data: F[S]):
    """Differentiate the LOSS with respect to its parameters."""
    S = shape(0, 3, 16)
    LOSS = choose("loss", "objective", "energy", "cost")
    KIND = choose("grad", "value_and_grad", "both", "twice")

    def LOSS(u: F[S], v: F[S]):
        terms: F[S] = smooth(u, v)
        return choose(
            0.5 * jnp.mean(jnp.square(terms)),
            jnp.sum(jnp.tanh(terms)) / float(prod(S)),
            jax.nn.logsumexp(jnp.sin(terms)),
            jnp.mean(jnp.cos(terms) * terms),
        )

    if KIND == "value_and_grad":
        value, slope = jax.value_and_grad(LOSS)(params, data)
        y: F[S] = slope * choose(value, jnp.tanh(value), jnp.abs(value))
    elif KIND == "both":
        first_slope, second_slope = jax.grad(LOSS, argnums=(0, 1))(params, data)
        y: F[S] = choose(first_slope - second_slope, first_slope * jnp.tanh(second_slope))
    elif KIND == "twice":
        slope: F[S] = jax.grad(LOSS)(params, data)
        y: F[S] = slope + jax.grad(LOSS, argnums=1)(params, slope)
    else:
        y: F[S] = jax.grad(LOSS)(params, data)
    stepped: F[S] = choose(
        params - choose(0.01, 0.1, 0.5) * y,
        y + 0.1 * jnp.sin(params),
        params * 0.9 - y,
    )
    return more(stepped, data, most=3)


@template("forward derivatives", "gradients", 2)
def directional_KIND(x: F[S], tangent: F[S]):
    """Compute a derivative along a tangent."""
    S = shape(0, 3, 16)
    KIND = choose("jvp", "linearize", "second", "both")
    NAME = choose("flow", "transform", "curve")

    def NAME(u: F[S]):
        return smooth(u)

    if KIND == "linearize":
        value, tangent_map = jax.linearize(NAME, x)
        change = tangent_map(tangent)
    elif KIND == "second":

        def slope_of(u):
            return jax.jvp(NAME, (u,), (tangent,))[1]

        value, change = jax.jvp(slope_of, (x,), (tangent,))
    else:
        value, change = jax.jvp(NAME, (x,), (tangent,))
    if KIND == "both":
        return value, change
    y: F[S] = choose(value - 0.5 * change, value * jnp.tanh(change), jnp.tanh(change) + value)
    return more(y, x, tangent, most=3)


@template("reverse derivatives", "gradients", 2)
def pullback_of_NAME(x: F[S], cotangent: F[S]):
    """Pull a cotangent back through a function."""
    S = shape(1, 3, 12)
    NAME = choose("transform", "model", "warp")

    def NAME(u: F[S]):
        return smooth(u)

    if chance(0.3):
        outputs, pullback = jax.vjp(NAME, x)
        (gradient,) = pullback(cotangent)
        return outputs, gradient
    _, pullback = jax.vjp(NAME, x)
    (gradient,) = pullback(choose(cotangent, jnp.tanh(cotangent), 0.5 * cotangent))
    y: F[S] = gradient + 0.1 * choose(jnp.sin(x), x, jnp.tanh(x))
    return more(y, x)


@template("second derivatives", "gradients", 2)
def KIND_of_NAME(x: W[N], v: W[N], shift: W[N]):
    """Compute second derivatives of the NAME of a vector."""
    N = size(2, 8)
    KIND = choose("hessian", "jacfwd", "jacrev", "hvp", "laplacian", "newton", "divergence")
    NAME = choose("energy", "potential") if KIND[0] in "hln" else choose("field", "residuals")

    def NAME(u: W[N]):
        terms: W[N] = choose(smooth(u), smooth(u, shift))
        if KIND in ("jacfwd", "jacrev", "divergence"):
            return jnp.cos(terms) * jnp.flip(u)
        return jnp.sum(choose(jnp.sin(terms), jnp.square(terms), jnp.tanh(terms) * u))

    if KIND in ("hessian", "jacfwd", "jacrev"):
        y: W[N, N] = jax.KIND(NAME)(x)
    elif KIND == "hvp":
        y: W[N] = jax.jvp(jax.grad(NAME), (x,), (v,))[1] + 0.1 * jnp.sin(x)
    elif KIND == "laplacian":
        y: W[()] = jnp.trace(jax.hessian(NAME)(x))
    elif KIND == "divergence":
        y: W[()] = jnp.trace(jax.jacfwd(NAME)(x))
    else:
        slope = jax.grad(NAME)(x)
        curvature = jnp.diagonal(jax.hessian(NAME)(x))
        y: W[N] = x - jnp.tanh(slope) / (1.0 + curvature**2)
    return more(y, most=3)


@template("training step", "gradients", 3)
def KIND_step(
    x: F[BATCH, N],
    weights: F[N, M],
    bias: F[M],
    labels: INDEX[BATCH, below(M)],
    targets: F[BATCH, K],
):
    """Run one step of gradient descent on a KIND loss."""
    BATCH, N, M = size(2, 16), size(2, 12), size(2, 8)
    KIND = choose("regression", "classification", "ranking", "reconstruction")
    K = N if KIND == "reconstruction" else M
    RATE = choose(0.01, 0.1, 0.3)
    BIASED = chance(0.5)

    def loss(kernel, offset):
        scores: F[BATCH, M] = x @ kernel / float(N) + offset
        outputs: F[BATCH, M] = choose(scores, smooth(scores), jnp.tanh(scores))
        if KIND == "classification":
            log_probs = jax.nn.log_softmax(outputs)
            picked = jnp.take_along_axis(log_probs, labels[:, None], axis=1)
            return -jnp.mean(picked)
        if KIND == "reconstruction":
            decoded = jnp.tanh(outputs) @ kernel.T
            return jnp.mean((decoded - targets) ** 2) / float(N)
        if KIND == "ranking":
            return jnp.mean(jax.nn.softplus(-outputs * targets))
        return jnp.mean((outputs - targets) ** 2) / 10.0

    if BIASED:
        slopes = jax.grad(loss, argnums=(0, 1))(weights, bias)
        return weights - RATE * slopes[0], bias - RATE * slopes[1]
    slope = jax.grad(loss)(weights, bias)
    y: F[N, M] = weights - RATE * slope
    return more(y, weights, most=3)
