"""Templates of derivatives."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("gradient of a loss", "gradients", 4)
def NAME_LOSS(params: F[S], data: F[S], weights: F[S, "positive"]):
    """TITLE."""
    S, RATE = shape(1, 3, 16), choose(0.3, 0.1, 0.05)
    LOSS = choose("loss", "objective", "energy", "cost")
    KIND = choose("grad", "value_and_grad", "both", "penalised", "descent", "sharpness", "fisher")
    NAME, TITLE = {
        "grad": ("gradient_of", f"Differentiate the {LOSS} with respect to its parameters"),
        "value_and_grad": ("value_and_gradient_of", f"Compute the {LOSS} and its gradient"),
        "both": ("sensitivities_of", f"Differentiate the {LOSS} by parameters and data"),
        "penalised": ("gradient_penalty_of", f"Penalize large gradients of the {LOSS}"),
        "descent": ("step_down", f"Make steps of gradient descent on the {LOSS}"),
        "sharpness": ("perturbed_gradient_of", f"Differentiate the {LOSS} at a worse point"),
        "fisher": ("preconditioned_gradient_of", f"Scale the gradient of the {LOSS}"),
    }[KIND]

    def LOSS(u: F[S], v: F[S]):
        terms: F[S] = smooth(u, v)
        return choose(
            0.5 * jnp.mean(jnp.square(terms)),
            jnp.sum(terms**2),
            jax.nn.logsumexp(terms),
            jnp.mean(jnp.log1p(terms**2)),
            jnp.mean(weights * terms**2),
            jnp.mean(terms**2) + choose(0.1, 0.01) * jnp.mean(u**2),
            jnp.mean(jnp.sqrt(1.0 + terms**2)),
            jnp.mean(jax.nn.softplus(terms)),
        )

    if KIND == "value_and_grad":
        return jax.value_and_grad(LOSS)(params, data)
    if KIND == "both":
        return jax.grad(LOSS, argnums=(0, 1))(params, data)
    slope: F[S] = jax.grad(LOSS)(params, data)
    if KIND == "penalised":
        norm = choose(jnp.sum(slope**2), jnp.sqrt(jnp.sum(jnp.square(slope)) + 1e-3))
        return choose(norm, LOSS(params, data) + choose(0.1, 10.0) * norm, (norm - 1.0) ** 2)
    if KIND == "descent":
        current = params - RATE * slope
        for _ in range(between(1, 2)):
            current = current - RATE * jax.grad(LOSS)(current, data)
        return choose(current, LOSS(current, data))
    if KIND == "sharpness":
        size_of = jnp.sqrt(jnp.sum(slope**2) + 1e-3)
        y: F[S] = jax.grad(LOSS)(params + choose(0.1, 0.05) * slope / size_of, data)
    elif KIND == "fisher":
        y: F[S] = choose(
            slope / (jnp.square(slope) + 0.1),
            slope / jnp.sqrt(slope**2 + 1e-2),
            weights * slope,
            slope / (jnp.sqrt(jnp.mean(slope**2)) + 1e-3),
            jnp.clip(slope, -1.0, 1.0),
        )
    else:
        y: F[S] = choose(slope, slope, params - RATE * slope, data - RATE * slope)
    return more(y, most=1)


@template("forward derivatives", "gradients", 2)
def NAME_KIND(x: F[S], tangent: F[S], shift: F[S]):
    """Compute a derivative of NAME along a tangent."""
    S = shape(0, 3, 16)
    KIND = choose("jvp", "linearize", "second", "both", "taylor")
    NAME = choose("flow", "response", "curve", "signal")

    def NAME(u: F[S]):
        value: F[S] = smooth(u)
        return choose(value, shift * value, value * u)

    if KIND == "linearize":
        value, tangent_map = jax.linearize(NAME, x)
        change = choose(tangent_map(tangent), tangent_map(tangent) - tangent, tangent_map(tangent))
    elif KIND == "second":

        def slope_of(u):
            return jax.jvp(NAME, (u,), (tangent,))[1]

        value, change = jax.jvp(slope_of, (x,), (tangent,))
    else:
        value, change = jax.jvp(NAME, (x,), (tangent,))
    if KIND == "both":
        return value, change
    if KIND == "taylor":
        y: F[S] = choose(value + change, value + 0.1 * change, NAME(x + tangent) - value - change)
        return more(y, most=1)
    y: F[S] = choose(change, change, change / (jnp.abs(value) + 1.0), value - 0.1 * change)
    return more(y, most=2)


@template("reverse derivatives", "gradients", 2)
def pullback_of_NAME(x: F[S], cotangent: F[S], shift: F[S]):
    """Pull a cotangent back through NAME."""
    S = shape(1, 3, 12)
    NAME = choose("response", "model", "decoder", "layer")

    def NAME(u: F[S]):
        return choose(smooth(u), smooth(u, shift), activated(u), normalised(u))

    if chance(0.3):
        outputs, pullback = jax.vjp(NAME, x)
        (gradient,) = pullback(choose(cotangent, outputs - cotangent))
        return outputs, gradient
    outputs, pullback = jax.vjp(NAME, x)
    (gradient,) = pullback(
        choose(cotangent, cotangent, outputs - cotangent, jnp.clip(cotangent, -1.0, 1.0))
    )
    y: F[S] = choose(gradient, gradient, x - 0.1 * gradient, x * gradient)
    return more(y, most=2)


@template("second derivatives", "gradients", 2)
def KIND_of_NAME(x: W[N], v: W[N], shift: W[N]):
    """Compute second derivatives of the NAME of a vector."""
    N = size(2, 8)
    KIND = choose("hessian", "jacfwd", "jacrev", "hvp", "laplacian", "newton", "divergence")
    NAME = choose("energy", "potential") if KIND[0] in "hln" else choose("field", "residuals")

    def NAME(u: W[N]):
        curve: W[N] = smooth(u)
        terms: W[N] = choose(curve, curve * shift, curve * u)
        if KIND in ("jacfwd", "jacrev", "divergence"):
            return choose(
                terms * jnp.roll(u, 1),
                terms - jnp.mean(u),
                terms * jnp.sum(u**2),
                terms - u[::-1],
                jnp.cumsum(terms),
                terms / (1.0 + jnp.sum(u**2)),
            )
        pairs = u[:-1] * u[1:]
        return choose(
            jnp.sum(terms**2),
            jnp.sum(terms) + 0.5 * jnp.sum(pairs),
            jax.nn.logsumexp(terms),
            jnp.sum((u[1:] - u[:-1] ** 2) ** 2) + jnp.mean(terms),
            jnp.sum(terms) * jnp.sum(u**2),
            jnp.log1p(jnp.sum(terms**2)),
        )

    if KIND in ("hessian", "jacfwd", "jacrev"):
        y: W[N, N] = jax.KIND(NAME)(x)
    elif KIND == "hvp":
        y: W[N] = choose(
            jax.jvp(jax.grad(NAME), (x,), (v,))[1],
            jax.grad(lambda u: jnp.vdot(jax.grad(NAME)(u), v))(x),
            jax.jvp(jax.grad(NAME), (x,), (v,))[1] + 0.1 * v,
        )
    elif KIND == "laplacian":
        y: W[()] = jnp.trace(jax.hessian(NAME)(x))
    elif KIND == "divergence":
        y: W[()] = jnp.trace(jax.jacfwd(NAME)(x))
    else:
        slope = jax.grad(NAME)(x)
        curvature = jnp.diagonal(jax.hessian(NAME)(x))
        y: W[N] = choose(
            x - slope / (jnp.abs(curvature) + 1.0),
            slope / (jnp.abs(curvature) + 0.1),
            x - 0.1 * slope / jnp.sqrt(curvature**2 + 0.1),
        )
    return more(y, most=1)


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
        scores: F[BATCH, M] = choose(x @ kernel + offset, x @ kernel / sqrt(N) + offset)
        outputs: F[BATCH, M] = choose(scores, scores, activated(scores), jnp.tanh(scores))
        if KIND == "classification":
            log_probs = jax.nn.log_softmax(outputs)
            picked = jnp.take_along_axis(log_probs, labels[:, None], axis=1)
            return -jnp.mean(picked)
        if KIND == "reconstruction":
            decoded = choose(jnp.tanh(outputs), outputs) @ kernel.T
            return choose(jnp.mean((decoded - targets) ** 2), jnp.mean(jnp.abs(decoded - targets)))
        if KIND == "ranking":
            return jnp.mean(jax.nn.softplus(-outputs * targets))
        return choose(
            jnp.mean((outputs - targets) ** 2),
            0.5 * jnp.mean(jnp.square(outputs - targets)),
            jnp.mean((outputs - targets) ** 2) + 1e-3 * jnp.sum(kernel**2),
            jnp.mean(jnp.sqrt((outputs - targets) ** 2 + 1e-2)),
            jnp.mean(jnp.sum(jnp.square(outputs - targets), axis=-1)),
        )

    if BIASED:
        slopes = jax.grad(loss, argnums=(0, 1))(weights, bias)
        return choose(
            (weights - RATE * slopes[0], bias - RATE * slopes[1]),
            jax.tree.map(lambda p, g: p - RATE * g, (weights, bias), slopes),
        )
    slope = jax.grad(loss)(weights, bias)
    if chance(0.3):
        norm = jnp.sqrt(jnp.sum(slope**2) + 1e-3)
        return weights - RATE * slope / jnp.maximum(norm, 1.0)
    if chance(0.3):
        return weights - RATE * (slope + choose(0.01, 0.1) * weights)
    return choose(weights - RATE * slope, slope)
