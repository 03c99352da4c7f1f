"""Templates of custom derivatives, checkpoints and other calls that wrap functions."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

RULES = (
    ("softsign", "x / (1.0 + jnp.abs(x))", "1.0 / (1.0 + jnp.abs(x)) ** 2"),
    ("log1pexp", "jnp.logaddexp(x, 0.0)", "jax.nn.sigmoid(x)"),
    ("soft_clip", "jnp.tanh(x)", "1.0 - jnp.tanh(x) ** 2"),
    ("bump", "jnp.exp(-jnp.square(x))", "-2.0 * x * jnp.exp(-jnp.square(x))"),
    ("wave", "jnp.sin(2.0 * x)", "2.0 * jnp.cos(2.0 * x)"),
    ("leaky", "jnp.maximum(x, 0.1 * x)", "jnp.where(x > 0.0, 1.0, 0.1)"),
)
"""Names of functions, their values and their slopes at `x`."""


@template("custom_jvp", "custom rules", 3)
def NAME_with_jvp(x: F[S], shift: F[S], scale: F[()]):
    """Apply NAME with its own rule for forward derivatives."""
    S = shape(0, 4, 16)
    NAME, VALUE, SLOPE = choose(*RULES)
    with module:

        @jax.custom_jvp
        def NAME(x):
            return VALUE

        if chance(0.5):

            @NAME.defjvp
            def NAME_jvp(primals, tangents):
                (x,) = primals
                (tangent,) = tangents
                slope = SLOPE
                return NAME(x), slope * tangent
        else:
            NAME.defjvps(lambda tangent, answer, x: tangent * SLOPE)

    y: F[S] = NAME(choose(x, x, 2.0 * x, x - shift, scale * x))
    KIND = choose("value", "grad", "jvp", "residual")
    if KIND == "grad":
        y: F[S] = jax.grad(lambda u: jnp.sum(choose(NAME(u) * shift, NAME(u) ** 2)))(x)
    elif KIND == "jvp":
        return jax.jvp(NAME, (x,), (shift,))
    elif KIND == "residual":
        y: F[S] = choose(x + y, NAME(y - shift))
    return more(y, most=2)


@template("custom_vjp", "custom rules", 3)
def NAME_with_vjp(x: F[S], shift: F[S]):
    """Apply NAME with its own rule for reverse derivatives."""
    S = shape(0, 4, 16)
    NAME, VALUE, SLOPE = choose(*RULES)
    with module:

        @jax.custom_vjp
        def NAME(x):
            return VALUE

        def NAME_fwd(x):
            return NAME(x), x

        def NAME_bwd(x, cotangent):
            slope = SLOPE
            if chance(0.5):
                label("own-derivative")
                return (jnp.clip(cotangent, -1.0, 1.0) * slope,)
            return (cotangent * slope,)

        NAME.defvjp(NAME_fwd, NAME_bwd)

    y: F[S] = NAME(choose(x, x, 2.0 * x, x - shift))
    if chance(0.3):
        y: F[S] = jax.grad(lambda u: jnp.sum(choose(NAME(u) * shift, NAME(u) ** 2)))(x)
    elif chance(0.3):
        y: F[S] = choose(x + y, y - x, y * shift)
    return more(y, most=2)


@template("checkpoint", "custom rules", 3)
def rematerialised_NAME(x: F[S], weights: F[S]):
    """Apply a NAME whose intermediates are recomputed for derivatives."""
    S, NAME = shape(0, 3, 12), choose("block", "layer", "stage")
    POLICY = choose("dots_saveable", "everything_saveable", "nothing_saveable")
    with module:
        if chance(0.3):

            @partial(jax.checkpoint, policy=jax.checkpoint_policies.POLICY)
            def NAME(u: F[S], v: F[S]):
                return smooth(u, v)
        elif chance(0.3):

            @jax.checkpoint
            def NAME(u: F[S], v: F[S]):
                hidden: F[S] = smooth(u, v)
                saved: F[S] = checkpoint_name(hidden, "NAME_out")
                return choose(saved, activated(saved), saved * u)
        else:

            @choose(jax.checkpoint, jax.remat)
            def NAME(u: F[S], v: F[S]):
                return smooth(u, v)

    y: F[S] = NAME(x, weights)
    KIND = choose("value", "twice", "grad", "both")
    if KIND == "twice":
        y: F[S] = choose(NAME(y, weights), x + NAME(y, weights), NAME(y, x))
    if KIND == "grad":
        return weights - 0.1 * jax.grad(lambda w: jnp.mean(NAME(x, w) ** 2))(weights)
    if KIND == "both":
        return jax.value_and_grad(lambda u: jnp.mean(choose(NAME(u, weights), NAME(u, y) ** 2)))(x)
    return more(y, x, most=1)


@template("wrapped calls", "custom rules", 14)
def NAME(x: W[S], bias: W[S]):
    """TITLE."""
    S = shape(0, 3, 12)
    KIND, NAME, TITLE = choose(
        ("barrier", "behind_barrier", "Compute with values that the compiler keeps in order"),
        ("composite", "squash_as_composite", "Apply a function that is one operation when lowered"),
        ("composite", "bounded_as_composite", "Bound values by one operation when lowered"),
        ("callback", "evaluate_on_host", "Evaluate a part on the host"),
        ("callback", "call_numpy", "Call NumPy from a compiled function"),
        ("stop", "with_frozen_gate", "Gate values without differentiating the gate"),
        ("copy", "copied_features", "Compute with a copy of intermediate values"),
        ("device_put", "place_features", "Place intermediate values on the default device"),
        ("sink", "keep_statistics", "Keep intermediate values from being removed"),
        ("sink", "keep_diagnostics", "Keep a diagnostic that nothing reads"),
        ("empty", "write_to_buffer", "Write values into a buffer without initial values"),
        ("empty", "fill_workspace", "Fill a workspace, and go on with it"),
    )
    y: W[S] = choose(mapped(x, 2), activated(x))
    inner: W[S] = choose(y, y, x + y, y * bias, x - bias, binary(x, bias))
    with module:
        if KIND == "composite":

            @partial(lax.composite, name="example.squash")
            def squash(x: W[S]):
                return choose(mixed(x), activated(x), x / (1.0 + jnp.abs(x)))
        elif KIND == "callback":

            def on_host(x):
                """Return a function of x, computed by NumPy."""
                return choose(np.tanh(x), np.arctan(x), np.sin(x)).astype(x.dtype)

    if KIND == "barrier":
        first, second = lax.optimization_barrier((inner, x))
        z: W[S] = choose(first + second, first - second, first * second)
    elif KIND == "composite":
        z: W[S] = squash(inner)
    elif KIND == "callback":
        result_type = jax.ShapeDtypeStruct(inner.shape, inner.dtype)
        z: W[S] = jax.pure_callback(on_host, result_type, inner, vmap_method="sequential")
    elif KIND == "stop":
        z: W[S] = choose(
            inner * lax.stop_gradient(jax.nn.sigmoid(inner)),
            x + lax.stop_gradient(inner - x),
            inner / (lax.stop_gradient(jnp.abs(inner)) + 0.1),
        )
    elif KIND == "copy":
        z: W[S] = choose(jnp.array(inner, copy=True), jnp.copy(inner))
    elif KIND == "device_put":
        z: W[S] = jax.device_put(inner)
    elif KIND == "sink":
        lax.dce_sink(inner)
        z: W[S] = choose(activated(x), binary(x, bias), smooth(x, bias))
    else:
        z: W[S] = jnp.empty_like(inner).at[...].set(inner)
    total: W[S] = choose(z, z, x + z, z - bias, z * x)
    return more(total, most=2)
