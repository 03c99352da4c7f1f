"""Templates of custom derivatives, checkpoints and other calls that wrap functions."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("custom_jvp", "custom rules", 3)
def NAME_with_jvp(x: F[S], shift: F[S], scale: F[()]):
    """Apply NAME with its own rule for forward derivatives."""
    S = shape(0, 4, 16)
    NAME, VALUE, SLOPE = choose(
        ("softsign", "x / (1.0 + jnp.abs(x))", "1.0 / (1.0 + jnp.abs(x)) ** 2"),
        ("log1pexp", "jnp.logaddexp(x, 0.0)", "jax.nn.sigmoid(x)"),
        ("smooth_abs", "jnp.sqrt(jnp.square(x) + 0.01)", "x / jnp.sqrt(jnp.square(x) + 0.01)"),
        ("leaky_relu", "jnp.where(x > 0.0, x, 0.1 * x)", "jnp.where(x > 0.0, 1.0, 0.1)"),
        ("soft_clip", "jnp.tanh(x)", "1.0 - jnp.tanh(x) ** 2"),
        ("bump", "jnp.exp(-jnp.square(x))", "-2.0 * x * jnp.exp(-jnp.square(x))"),
        ("cube", "x ** 3", "3.0 * x ** 2"),
        ("wave", "jnp.sin(2.0 * x)", "2.0 * jnp.cos(2.0 * x)"),
        ("leaky", "jnp.maximum(x, 0.1 * x)", "jnp.where(x > 0.0, 1.0, 0.1)"),
    )
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
    KIND = choose("value", "value", "grad", "jvp", "residual", "loss", "twice")
    if KIND == "grad":
        y: F[S] = jax.grad(lambda u: jnp.sum(choose(NAME(u), NAME(u) * shift, NAME(u) ** 2)))(x)
    elif KIND == "jvp":
        return jax.jvp(NAME, (x,), (choose(shift, jnp.ones_like(x)),))
    elif KIND == "residual":
        y: F[S] = choose(x + y, y - x, y * x, y * shift)
    elif KIND == "loss":
        return choose(
            jnp.mean(y), jnp.sum(jnp.square(y - shift)), jnp.mean((y - shift) ** 2), jnp.sum(y)
        )
    elif KIND == "twice":
        y: F[S] = NAME(choose(y, y - shift, -y))
    return more(y, most=2)


@template("custom_vjp", "custom rules", 3)
def NAME_with_vjp(x: F[S], shift: F[S], gain: F[()]):
    """Apply NAME with its own rule for reverse derivatives."""
    S, SCALED = shape(0, 4, 16), chance(0.3)
    NAME, VALUE, SLOPE = choose(
        ("softsign", "x / (1.0 + jnp.abs(x))", "1.0 / (1.0 + jnp.abs(x)) ** 2"),
        ("log1pexp", "jnp.logaddexp(x, 0.0)", "jax.nn.sigmoid(x)"),
        ("soft_clip", "jnp.tanh(x)", "1.0 - jnp.tanh(x) ** 2"),
        ("bump", "jnp.exp(-jnp.square(x))", "-2.0 * x * jnp.exp(-jnp.square(x))"),
        ("wave", "jnp.sin(2.0 * x)", "2.0 * jnp.cos(2.0 * x)"),
        ("leaky", "jnp.maximum(x, 0.1 * x)", "jnp.where(x > 0.0, 1.0, 0.1)"),
    )
    with module:
        if SCALED:

            @jax.custom_vjp
            def NAME(x, scale):
                return scale * VALUE

            def NAME_fwd(x, scale):
                return NAME(x, scale), (x, scale)

            def NAME_bwd(residuals, cotangent):
                x, scale = residuals
                scale_bar = jnp.sum(cotangent * VALUE)
                return cotangent * scale * SLOPE, scale_bar.astype(scale.dtype)
        else:

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

    if SCALED:
        y: F[S] = NAME(x, gain)
    else:
        y: F[S] = NAME(choose(x, x, 2.0 * x, x - shift))
    KIND = choose("value", "value", "grad", "residual", "loss", "twice")
    if KIND == "grad" and not SCALED:
        y: F[S] = jax.grad(lambda u: jnp.sum(choose(NAME(u), NAME(u) * shift, NAME(u) ** 2)))(x)
    elif KIND == "residual":
        y: F[S] = choose(x + y, y - x, y * x, y * shift)
    elif KIND == "loss":
        return choose(
            jnp.mean(y), jnp.sum(jnp.square(y - shift)), jnp.mean((y - shift) ** 2), jnp.sum(y)
        )
    elif KIND == "twice" and not SCALED:
        y: F[S] = NAME(choose(y, y - shift, -y))
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
    if chance(0.4):
        y: F[S] = choose(NAME(y, weights), x + NAME(y, weights), NAME(y, x))
    KIND = choose("value", "grad", "both", "loss")
    if KIND == "grad":
        return choose(
            jax.grad(lambda u: jnp.mean(NAME(u, weights)))(x),
            jax.grad(lambda w: jnp.sum(jnp.square(NAME(x, w))))(weights),
            weights - 0.1 * jax.grad(lambda w: jnp.mean(NAME(x, w) ** 2))(weights),
        )
    if KIND == "both":
        return jax.value_and_grad(lambda u: jnp.mean(choose(NAME(u, weights), NAME(u, y) ** 2)))(x)
    if KIND == "loss":
        return choose(jnp.mean(jnp.square(y)), jnp.mean((y - weights) ** 2), jnp.sum(y))
    return more(y, x, most=1)


@template("wrapped calls", "custom rules", 18)
def NAME(x: W[S], bias: W[S]):
    """TITLE."""
    S = shape(0, 3, 12)
    KIND, NAME, TITLE = choose(
        ("barrier", "behind_barrier", "Compute with values that the compiler keeps in order"),
        ("scope", "in_named_scope", "Compute in a named scope"),
        ("composite", "squash_as_composite", "Apply a function that is one operation when lowered"),
        ("callback", "evaluate_on_host", "Evaluate a part on the host"),
        ("callback", "call_numpy", "Call NumPy from a compiled function"),
        ("stop", "with_frozen_gate", "Gate values without differentiating the gate"),
        ("copy", "copied_features", "Compute with a copy of intermediate values"),
        ("device_put", "place_features", "Place intermediate values on the default device"),
        ("device_put", "place_state", "Place a state on the default device"),
        ("sink", "keep_statistics", "Keep intermediate values from being removed"),
        ("root", "implicit_layer", "Solve an equation for each element, with implicit gradients"),
        ("platform", "activation_by_platform", "Choose an activation by the platform"),
        ("linear_call", "weigh_linearly", "Apply a function that is linear in its second argument"),
        ("empty", "write_to_buffer", "Write values into a buffer without initial values"),
        ("empty", "fill_workspace", "Fill a workspace, and go on with it"),
        ("stack", "stacked_features", "Stack features and take them apart again"),
        ("token", "after_token", "Compute after a token was created"),
        ("reshard", "replicate_features", "Replicate intermediate values over a mesh"),
    )
    DEFAULTS = between(8, 20)
    y: W[S] = choose(mapped(x, 2), activated(x))
    inner: W[S] = choose(y, y, x + y, y - bias, y * bias, x - bias, binary(x, bias))
    with module:
        if KIND == "composite":

            @partial(lax.composite, name="example.squash")
            def squash(x):
                return choose(jnp.tanh(x), x / (1.0 + jnp.abs(x)), x * jax.nn.sigmoid(x))
        elif KIND == "callback":

            def on_host(x):
                """Return a function of x, computed by NumPy."""
                return choose(np.tanh(x), np.arctan(x), np.sin(x)).astype(x.dtype)
        elif KIND == "reshard":
            MESH = jax.make_mesh((1,), ("data",), axis_types=(AxisType.Explicit,))
    if KIND == "barrier":
        first, second = lax.optimization_barrier((inner, x))
        z: W[S] = choose(first + second, first - second, first * second)
    elif KIND == "scope":
        with jax.named_scope("stage"):
            z: W[S] = choose(mapped(inner, 2), activated(inner))
            z = choose(z + x, z * x, 0.5 * z)
    elif KIND == "composite":
        z: W[S] = squash(inner)
    elif KIND == "callback":
        result_type = jax.ShapeDtypeStruct(inner.shape, inner.dtype)
        z: W[S] = jax.pure_callback(on_host, result_type, inner, vmap_method="sequential")
    elif KIND == "stop":
        z: W[S] = choose(
            inner * lax.stop_gradient(jax.nn.sigmoid(inner)),
            x - lax.stop_gradient(inner),
            x + lax.stop_gradient(inner - x),
            inner / (lax.stop_gradient(jnp.abs(inner)) + 0.1),
        )
    elif KIND == "copy":
        z: W[S] = choose(jnp.array(inner, copy=True), jnp.copy(inner))
    elif KIND == "device_put":
        z: W[S] = jax.device_put(inner)
    elif KIND == "sink":
        lax.dce_sink(inner)
        z: W[S] = choose(activated(x), binary(x, bias), smooth(x))
    elif KIND == "root":

        def residual(v):
            return choose(v + 0.5 * jnp.tanh(v) - inner, v + 0.3 * jnp.sin(v) - inner)

        def solve_with(f, start):
            return lax.fori_loop(0, DEFAULTS, lambda _, v: v - 0.6 * f(v), start)

        def tangent_solve(g, b):
            return b / g(jnp.ones_like(b))

        z: W[S] = lax.custom_root(residual, jnp.zeros_like(inner), solve_with, tangent_solve)
    elif KIND == "platform":

        def on_cpu(v):
            return jnp.tanh(v)

        def elsewhere(v):
            return lax.tanh(v)

        z: W[S] = lax.platform_dependent(inner, cpu=on_cpu, default=elsewhere)
    elif KIND == "linear_call":

        def forward(residual, v):
            return residual * v

        weights = lax.stop_gradient(inner)
        z: W[S] = linear_call(forward, forward, weights, x)
    elif KIND == "token":
        lax.after_all(lax.create_token())
        z: W[S] = choose(activated(inner), smooth(inner), inner + x)
    elif KIND == "reshard":
        sharding = NamedSharding(MESH, PartitionSpec())
        z: W[S] = jax.reshard(inner, sharding)
    elif KIND == "empty":
        z: W[S] = jnp.empty_like(inner).at[...].set(inner)
    else:
        both = jnp.stack([inner, x])
        first, second = jnp.unstack(
            choose(jax.nn.softmax(both, axis=0), both**2, jnp.cumsum(both, 0))
        )
        z: W[S] = choose(
            first - second, first * x + second * inner, jnp.sqrt(first + second + 1e-3)
        )
    total: W[S] = choose(z, z, x + z, z - bias, z * x)
    return more(total, most=2)


@template("composites", "custom rules", 3)
def composite_NAME(x: W[S], gains: W[S, "unit"]):
    """Call NAME as one operation."""
    S, PAIR = shape(1, 3, 12), chance(0.4)
    NAME = choose("squash", "activation", "block", "response", "gate_values")
    DOMAIN, VERSION = choose("example", "model", "my_library"), between(1, 2)
    source: W[S] = prepared(x)
    with module:
        if PAIR:

            @partial(lax.composite, name="DOMAIN.NAME", version=VERSION)
            def NAME(v: W[S], weights: W[S]):
                return mixed(v, weights)
        else:

            @partial(lax.composite, name="DOMAIN.NAME")
            def NAME(v: W[S]):
                return choose(mixed(v), activated(v), normalised(v))

    y: W[S] = NAME(source, gains) if PAIR else NAME(source)
    total: W[S] = choose(y, y, x + y, gains * y)
    return more(total, most=2)


@template("barriers and sinks", "custom rules", 5)
def NAME(x: F[S], y: F[S]):
    """TITLE."""
    S = shape(1, 3, 16)
    KIND, NAME, TITLE = choose(
        *(("sink", "forward_with_statistics", "Keep statistics from being removed"),),
        *(("sink", "forward_with_diagnostics", "Keep a diagnostic that nothing reads"),),
        *(("sink", "keep_intermediate", "Keep intermediate values from being removed"),),
        *(("barrier", "separate_stages", "Keep two stages from being fused"),),
        *(("pair", "synchronise", "Compute two values before either is used"),),
        *(("stages", "staged_update", "Keep the stages of an update apart"),),
    )
    source: F[S] = prepared(x)
    if KIND == "sink":
        diagnostic = choose(reduced(source), reduced(source, axis=0), normalised(source))
        lax.dce_sink(diagnostic)
        z: F[S] = choose(mapped(source, 3), binary(source, y), activated(source), smooth(source, y))
    elif KIND == "barrier":
        first: F[S] = choose(activated(source), normalised(source), smooth(source, y))
        kept: F[S] = lax.optimization_barrier(first)
        z: F[S] = choose(mapped(kept), kept - x, binary(kept, y))
    elif KIND == "pair":
        one: F[S] = choose(activated(source), mapped(source, 2))
        other: F[S] = choose(activated(y), mapped(y, 2))
        left, right = lax.optimization_barrier((one, other))
        z: F[S] = choose(left - right, left * right, left + right, jnp.maximum(left, right))
    else:
        first: F[S] = choose(binary(source, y), smooth(source))
        held: F[S] = lax.optimization_barrier(first)
        second: F[S] = choose(activated(held), normalised(held))
        z: F[S] = choose(x + lax.optimization_barrier(second), lax.optimization_barrier(second) - y)
    return more(z, most=1)
