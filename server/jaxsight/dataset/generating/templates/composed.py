"""Templates of several functions, and of transformations inside each other."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("pipeline of helpers", "helper functions", 4)
def FIRST_then_SECOND(x: F[S], reference: F[S]):
    """Apply FIRST, then SECOND."""
    S, COUNT = shape(0, 3, 12), between(2, 3)
    FIRST, SECOND, THIRD = sample(
        ["smooth_out", "sharpen", "rescale", "warp", "encode", "blend", "tune", "preprocess"], 3
    )
    with module:

        def FIRST(u: F[S]):
            return smooth(u)

        if chance(0.3):

            @jax.jit
            def SECOND(u: F[S], v: F[S]):
                return smooth(u, v)
        else:

            def SECOND(u: F[S], v: F[S]):
                """Combine the hidden values with the reference."""
                return smooth(u, v)

        def THIRD(u: F[S]):
            value: F[S] = normalised(u) if S else mapped(u)
            return choose(value, value + 0.2 * u)

    hidden: F[S] = FIRST(choose(x, 0.5 * x))
    y: F[S] = SECOND(hidden, reference)
    if COUNT == 3:
        y: F[S] = THIRD(y)
    if chance(0.3):
        y: F[S] = FIRST(jnp.tanh(y))
    z: F[S] = y - 0.5 * reference
    return more(z, x, most=3)


@template("jitted helper", "helper functions", 3)
def NAME_by_KIND(x: F[S]):
    """Apply a jitted function with a static argument `KIND`."""
    S, NAME = shape(1, 3, 12), choose("summarize", "rescale", "transform_by")
    KIND, A = choose("axis", "mode", "degree", "gain"), between(0, len(S) - 1)
    with module:
        if KIND == "axis":

            @partial(jax.jit, static_argnames=("axis",))
            def NAME(x: F[S], axis):
                inner: F[S] = mapped(x, 2)
                return choose(jnp.mean, jnp.max, jnp.min, jnp.sum)(inner, axis=axis) / 4.0
        elif KIND == "mode":

            @partial(jax.jit, static_argnames=("mode",))
            def NAME(x: F[S], mode):
                inner: F[S] = choose(mapped(x, 2), prepared(x))
                if mode == "soft":
                    return jax.nn.softplus(inner)
                return jnp.maximum(inner, 0.1 * inner)
        elif KIND == "degree":

            @partial(jax.jit, static_argnames=("degree",))
            def NAME(x: F[S], degree):
                result: F[S] = mapped(x, 2)
                for _ in range(degree):
                    result = jnp.tanh(result) + 0.5 * x
                return result
        else:

            @partial(jax.jit, static_argnames=("gain",), inline=True)
            def NAME(x: F[S], gain):
                inner: F[S] = mapped(x, 2)
                return gain * inner + x

    if KIND == "axis":
        y: F[S[1:]] = NAME(x, A) + choose(0.5, 0.2) * NAME(jnp.tanh(x), A)
        return more(y)
    if KIND == "mode":
        first = NAME(x, "soft")
        second = NAME(x, "leaky")
    elif KIND == "degree":
        first = NAME(x, 2)
        second = NAME(x, 3)
    else:
        first = NAME(x, 0.5)
        second = NAME(x, 2.0)
    y: F[S] = choose(first - 0.5 * second, first * jnp.tanh(second), first + second)
    return more(y)


@template("recursive helper", "helper functions", 2)
def recursive_KIND(x: F[B, N]):
    """Transform values recursively."""
    N, B, KIND = choose(4, 8, 16), shape(0, 1, 6), choose("halves", "depth", "butterfly")
    NAME = choose("combine_halves", "refine", "fold_up")
    with module:
        if KIND == "halves":

            def NAME(values):
                """Combine the halves of the last axis until one is left."""
                count = values.shape[-1]
                if count == 1:
                    return values[..., 0]
                left = values[..., : count // 2]
                right = values[..., count // 2 :]
                return NAME(
                    choose(
                        jnp.maximum(left, right),
                        0.5 * (left + right),
                        left * jnp.tanh(right),
                        jnp.logaddexp(left, right),
                        jnp.sin(left) + jnp.cos(right),
                    )
                )
        elif KIND == "depth":

            def NAME(values: F[B, N], depth):
                if depth == 0:
                    return values
                inner: F[B, N] = smooth(values)
                return NAME(0.5 * values + jnp.tanh(inner), depth - 1)
        else:

            def NAME(values):
                """Mix the halves of the last axis at all scales."""
                count = values.shape[-1]
                if count == 1:
                    return values
                left = values[..., : count // 2]
                right = values[..., count // 2 :]
                low = NAME(choose(0.5, 0.7) * (left + right))
                high = NAME(0.5 * (left - right))
                return jnp.concatenate([low, high], axis=-1)

    inputs: F[B, N] = prepared(x)
    if KIND == "depth":
        y: F[B, N] = NAME(inputs, between(2, 5))
    elif KIND == "halves":
        y: F[B] = NAME(inputs)
    else:
        y: F[B, N] = NAME(inputs)
    return more(y)


@template("function of functions", "helper functions", 3)
def KIND_of_FIRST_and_SECOND(x: F[S]):
    """Build a function from FIRST and SECOND, and apply it."""
    S, KIND = shape(0, 3, 12), choose("composition", "repetition", "factory", "residual", "blend")
    FIRST, SECOND = sample(["bend", "twist", "squeeze", "lift", "tilt"], 2)
    with module:

        def FIRST(u: F[S]):
            return smooth(u)

        def SECOND(u: F[S]):
            return smooth(u)

        if KIND == "composition":

            def compose(*functions):
                """Return the functions applied from right to left."""

                def composed(x):
                    for function in reversed(functions):
                        x = function(x)
                    return x

                return composed
        elif KIND == "repetition":

            def repeat(function, x, count):
                """Return the function applied count times."""
                for _ in range(count):
                    x = jnp.tanh(function(x))
                return x
        elif KIND == "factory":

            def make_layer(function, scale):
                """Return a scaled version of a function."""

                def layer(x):
                    return scale * function(x) + choose(x, 0.5 * x, jnp.sin(x))

                return layer
        elif KIND == "blend":

            def blend(function, x, weight=0.5):
                """Blend x with a function of it."""
                return weight * function(x) + (1.0 - weight) * x
        else:

            def with_residual(function, x):
                """Return x plus a bounded function of it."""
                return x + choose(0.1, 0.5, 1.0) * jnp.tanh(function(x))

    if KIND == "composition":
        y: F[S] = choose(compose(FIRST, SECOND), compose(FIRST, jnp.tanh, SECOND))(x)
    elif KIND == "repetition":
        y: F[S] = repeat(FIRST, x, between(1, 3)) - 0.5 * repeat(SECOND, x, between(1, 3))
    elif KIND == "factory":
        first_layer = make_layer(FIRST, choose(0.5, 2.0, 0.1))
        second_layer = make_layer(SECOND, choose(0.5, 1.5, 0.1))
        y: F[S] = second_layer(jnp.tanh(first_layer(x)))
    elif KIND == "blend":
        first_blend = partial(blend, FIRST, weight=choose(0.1, 0.3, 0.7))
        y: F[S] = first_blend(jnp.tanh(blend(SECOND, x)))
    else:
        y: F[S] = with_residual(SECOND, with_residual(FIRST, x))
    return more(y, x, most=3)


@template("constants and helpers", "helper functions", 3)
def NAME_with_constants(x: F[S, N]):
    """Apply NAME with constants of the module."""
    N, S, NAME = between(2, 5), shape(0, 2, 10), choose("weigh", "project", "score")
    NUMBERS = tuple([choose(0.25, 0.5, 1.0, 1.5, -0.5, 2.0, -1.0) for K in range(N)])
    with module:
        WEIGHTS = NUMBERS
        RATE = choose(0.1, 0.5, 2.0)

        def NAME(x):
            """Weigh the last axis with the constants."""
            weights = jnp.array(WEIGHTS, x.dtype)
            value: F[S, N] = choose(
                x * weights, x + RATE * weights, jnp.tanh(x) * weights, x - weights
            )
            return choose(mapped(value, 2), value)

    y: F[S, N] = NAME(x) + RATE * jnp.sin(x)
    if chance(0.5):
        z: F[S] = reduced(y, axis=-1)
        return more(z)
    return more(y, x)


@template("gradients of examples", "nested transformations", 3)
def per_example_KIND_of_NAME(params: F[S], xs: F[B, S]):
    """Compute the gradients of the NAME for each example."""
    B, S, NAME = size(2, 8), shape(0, 2, 6), choose("loss", "energy", "objective")
    KIND = choose("grad", "value_and_grad", "jit", "argnums")

    def NAME(u: F[S], v: F[S]):
        terms: F[S] = smooth(u, v)
        return choose(
            jnp.mean(terms**2), jnp.sum(jnp.sin(terms)), jnp.mean(jnp.tanh(terms) * terms)
        )

    if KIND == "value_and_grad":
        values, slopes = jax.vmap(jax.value_and_grad(NAME), in_axes=(None, 0))(params, xs)
        grads: F[B, S] = slopes + 0.1 * jnp.mean(values)
    elif KIND == "grad":
        grads: F[B, S] = jax.vmap(jax.grad(NAME), in_axes=(None, 0))(params, xs)
    elif KIND == "jit":
        grads: F[B, S] = jax.vmap(jax.jit(jax.grad(NAME)), in_axes=(None, 0))(params, xs)
    else:
        grads: F[B, S] = jax.vmap(jax.grad(NAME, argnums=1), in_axes=(None, 0))(params, xs)
    average: F[S] = reduced(grads, axis=0)
    y: F[S] = choose(
        params - 0.1 * average, average + 0.1 * jnp.mean(grads), average * jnp.cos(params)
    )
    return more(y, params, most=3)


@template("derivatives of derivatives", "nested transformations", 3)
def KIND_of_NAME(x: W[S], y: W[S]):
    """Compute derivatives of derivatives of the NAME."""
    S, NAME = shape(0, 1, 8), choose("potential", "energy", "action")
    KIND = choose("grad_grad", "grad_norm", "jvp_grad", "jacfwd_grad", "vjp_jvp", "jit_grad")

    def NAME(u: W[S], v: W[S]):
        terms: W[S] = smooth(u, v)
        return choose(
            jnp.mean(terms**2), jnp.sum(jnp.sin(terms)), jnp.mean(jnp.tanh(terms) * terms)
        )

    def penalty(u):
        slope = jax.grad(NAME)(u, y)
        return choose(jnp.sum(slope**2) + jnp.sum(u), jnp.sum(jnp.sin(slope)))

    def change(u):
        return jax.jvp(lambda v: NAME(u, v), (y,), (u,))[1]

    if KIND in ("grad_grad", "grad_norm"):
        z: W[S] = jax.grad(penalty)(x)
    elif KIND == "jvp_grad":
        z: W[S] = jax.jvp(jax.grad(NAME), (x, y), (y, x))[1]
    elif KIND == "jacfwd_grad":
        z: W[S] = jnp.sum(jax.jacfwd(jax.grad(NAME), argnums=1)(x, y), axis=tuple(range(len(S))))
    elif KIND == "vjp_jvp":
        z: W[S] = jax.grad(change)(x)
    else:
        value, slope = jax.jit(jax.value_and_grad(NAME))(x, y)
        z: W[S] = slope * value
    total: W[S] = z + 0.1 * x * y
    return more(total, x, most=3)


@template("scan under vmap", "nested transformations", 3)
def batched_KIND(xs: F[B, N, S], initial: F[S]):
    """Run a loop over each sequence of a batch."""
    B, N, S = size(2, 6), size(2, 8), shape(0, 1, 6)
    KIND = choose("scan", "fori", "cond", "checkpoint")
    NAME = choose("filter_one", "run_one", "summarize")

    def NAME(row: F[N, S]):
        def advance(carry: F[S], x: F[S]):
            now: F[S] = jnp.tanh(carry)
            drive: F[S] = mixed(now, x)
            new = choose(jnp.sin(drive), 0.8 * now + 0.2 * jnp.tanh(drive), jnp.tanh(drive))
            if KIND == "cond":
                new = lax.cond(jnp.sum(x) > 0.0, jnp.tanh, jnp.sin, new)
            return new, choose(new, new * x)

        if KIND == "fori":
            return lax.fori_loop(0, N, lambda i, carry: advance(carry, row[i])[0], initial)
        if KIND == "checkpoint":
            final, outputs = lax.scan(jax.checkpoint(advance), initial, row)
        else:
            final, outputs = lax.scan(advance, initial, row)
        return choose(
            final + jnp.mean(outputs, axis=0),
            final * outputs[0],
            jnp.max(outputs, axis=0) + 0.1 * final,
        )

    y: F[B, S] = jax.vmap(NAME)(xs)
    if chance(0.4):
        slope = jax.grad(lambda rows: jnp.mean(jax.vmap(NAME)(rows)))(xs)
        y: F[B, S] = y + jnp.mean(slope, axis=1)
    z: F[B, S] = y + 0.1 * initial
    return more(z, most=3)


@template("branches in transformations", "nested transformations", 3)
def NAME_under_KIND(xs: F[N, S], flags: BOOL[N]):
    """Choose a branch for each row under KIND."""
    N, S, NAME = size(2, 8), shape(0, 1, 6), choose("choose_one", "process_one")
    KIND = choose("vmap", "map", "scan", "vmap_of_jit")

    def NAME(x: F[S], flag):
        def on_true(v: F[S]):
            return mapped(v, 3)

        def on_false(v: F[S]):
            return smooth(v)

        picked = lax.cond(flag, on_true, on_false, x)
        return choose(picked + 0.1 * x, picked - 0.5 * x)

    if KIND == "vmap":
        y: F[N, S] = jax.vmap(NAME)(xs, flags)
    elif KIND == "vmap_of_jit":
        y: F[N, S] = jax.vmap(jax.jit(NAME))(xs, flags)
    elif KIND == "map":
        y: F[N, S] = lax.map(lambda row: NAME(*row), (xs, flags))
    else:

        def advance(total, row):
            picked = NAME(*row)
            return 0.5 * total + jnp.tanh(picked), picked * total

        last, outputs = lax.scan(advance, jnp.ones_like(xs[0]), (xs, flags))
        y: F[N, S] = outputs + last
    return more(y, xs)


@template("unrolled optimisation", "nested transformations", 3)
def optimize_NAME(start: W[S], target: W[S]):
    """Run gradient descent on the NAME in a loop."""
    S, N, RATE = shape(0, 2, 8), between(2, 10), choose(0.1, 0.05, 0.01)
    NAME, FORM = choose("loss", "objective", "energy"), choose("fori", "scan", "unrolled")

    def NAME(u: W[S], v: W[S]):
        terms: W[S] = smooth(u, v)
        return choose(
            jnp.mean(terms**2), jnp.sum(jnp.sin(terms)), jnp.mean(jnp.tanh(terms) * terms)
        )

    def optimize(theta):
        slope = jax.grad(NAME)
        if FORM == "fori":
            return lax.fori_loop(
                0, N, lambda _, value: value - RATE * jnp.tanh(slope(value, target)), theta
            )
        if FORM == "scan":

            def advance(value, _):
                new = value - RATE * jnp.tanh(slope(value, target))
                return new, NAME(new, target)

            final, losses = lax.scan(advance, theta, None, length=N)
            return final + 0.01 * jnp.mean(losses)
        for _ in range(min(N, 4)):
            theta = theta - RATE * jnp.tanh(slope(theta, target))
        return theta

    y: W[S] = optimize(start)
    if chance(0.4):
        y: W[S] = y + jax.jvp(optimize, (start,), (jnp.ones_like(start),))[1]
    z: W[S] = y - 0.5 * target
    return more(z, start, most=3)
