"""Templates of derivatives."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("gradient of a loss", "gradients", 4)
def NAME_LOSS(params: F[S], data: F[S], weights: F[S, "positive"]):
    """TITLE."""
    S, RATE = shape(1, 3, 16), choose(0.3, 0.1, 0.05)
    LOSS = choose("loss", "objective", "energy", "cost")
    KIND = choose("grad", "value_and_grad", "both", "penalised", "descent")
    NAME, TITLE = {
        "grad": ("gradient_of", f"Differentiate the {LOSS} with respect to its parameters"),
        "value_and_grad": ("value_and_gradient_of", f"Compute the {LOSS} and its gradient"),
        "both": ("sensitivities_of", f"Differentiate the {LOSS} by parameters and data"),
        "penalised": ("gradient_penalty_of", f"Penalize large gradients of the {LOSS}"),
        "descent": ("step_down", f"Make steps of gradient descent on the {LOSS}"),
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
        )

    if KIND == "value_and_grad":
        return jax.value_and_grad(LOSS)(params, data)
    if KIND == "both":
        return jax.grad(LOSS, argnums=(0, 1))(params, data)
    slope: F[S] = jax.grad(LOSS)(params, data)
    if KIND == "penalised":
        norm = choose(jnp.sum(slope**2), jnp.sqrt(jnp.sum(jnp.square(slope)) + 1e-3))
        return choose(LOSS(params, data) + choose(0.1, 10.0) * norm, (norm - 1.0) ** 2)
    if KIND == "descent":
        current = params - RATE * slope
        for _ in range(between(1, 2)):
            current = current - RATE * jax.grad(LOSS)(current, data)
        return choose(current, LOSS(current, data))
    y: F[S] = choose(slope, weights * slope, params - RATE * slope, data - RATE * slope)
    return more(y, most=1)


@template("forward derivatives", "gradients", 2)
def NAME_KIND(x: F[S], tangent: F[S], shift: F[S]):
    """Compute a derivative of NAME along a tangent."""
    S = shape(0, 3, 16)
    KIND = choose("jvp", "linearize", "second", "both")
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
    y: F[S] = choose(change, change, change / (jnp.abs(value) + 1.0), value - 0.1 * change)
    return more(y, most=2)


@template("second derivatives", "gradients", 2)
def KIND_of_NAME(x: W[N], v: W[N], shift: W[N]):
    """Compute second derivatives of the NAME of a vector."""
    N = size(2, 8)
    KIND = choose("hessian", "jacfwd", "jacrev", "hvp", "newton")
    NAME = choose("energy", "potential") if KIND[0] in "hn" else choose("field", "residuals")

    def NAME(u: W[N]):
        curve: W[N] = smooth(u)
        terms: W[N] = choose(curve, curve * shift, curve * u)
        if KIND in ("jacfwd", "jacrev"):
            return choose(terms * jnp.roll(u, 1), terms * jnp.sum(u**2), jnp.cumsum(terms))
        pairs = u[:-1] * u[1:]
        return choose(
            jnp.sum(terms) + 0.5 * jnp.sum(pairs),
            jnp.sum(terms) * jnp.sum(u**2),
        )

    if KIND in ("hessian", "jacfwd", "jacrev"):
        y: W[N, N] = jax.KIND(NAME)(x)
    elif KIND == "hvp":
        y: W[N] = choose(
            jax.jvp(jax.grad(NAME), (x,), (v,))[1],
            jax.grad(lambda u: jnp.vdot(jax.grad(NAME)(u), v))(x),
        )
    else:
        slope = jax.grad(NAME)(x)
        curvature = jnp.diagonal(jax.hessian(NAME)(x))
        y: W[N] = choose(x - slope / (jnp.abs(curvature) + 1.0), slope / (jnp.abs(curvature) + 0.1))
    return more(y, most=1)
