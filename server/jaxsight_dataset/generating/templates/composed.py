"""Templates of several functions, and of transformations inside each other."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

LOSS = """
    choose(
        jnp.mean(terms**2),
        jnp.sum(jnp.square(terms)),
        jnp.mean(jnp.log1p(terms**2)),
        jnp.mean(terms**2) + 0.01 * jnp.sum(u**2),
        jax.nn.logsumexp(terms),
        0.5 * jnp.mean(jnp.square(terms)),
        jnp.mean(jnp.sqrt(1.0 + terms**2)) - 1.0,
    )
    """
"""A number made of `terms`, which depend on `u`."""


@template("pipeline of helpers", "helper functions", 4)
def NAME(x: F[S], reference: F[S], scale: F[()]):
    """TITLE."""
    S, COUNT = shape(0, 3, 12), between(1, 3)
    NAME, TITLE = choose(
        *(("forward", "Apply the parts of a model in turn"), ("score", "Score values")),
        *(("evaluate", "Compare features of values with a reference"),),
        *(("process", "Process a signal in stages"), ("simulate", "Compute a response in stages")),
    )
    FIRST, SECOND, THIRD = (
        choose("encode", "feature_map", "response", "embed", "link", "profile"),
        choose("combine", "interact", "couple", "compare", "attend_to", "correct"),
        choose("normalize", "rescale", "calibrate", "standardize"),
    )
    with module:

        def FIRST(u: F[S]):
            return choose(smooth(u), smooth(u), activated(u))

        if chance(0.3):

            @jax.jit
            def SECOND(u: F[S], v: F[S]):
                return smooth(u, v)
        elif chance(0.5):

            def SECOND(u: F[S], v: F[S]):
                """Combine values with a reference."""
                return smooth(u, v)
        else:

            def SECOND(u: F[S], v: F[S], weight=choose(0.1, 0.5, 1.0)):
                change: F[S] = smooth(u, v)
                return u + weight * change

        def THIRD(u: F[S]):
            return normalised(u) if S else mapped(u)

    hidden: F[S] = choose(FIRST(x), FIRST(scale * x), FIRST(x - reference))
    y: F[S] = SECOND(hidden, reference) if COUNT > 1 else choose(hidden, scale * hidden)
    if COUNT == 3:
        y: F[S] = THIRD(y)
    if chance(0.25):
        y: F[S] = choose(x + y, scale * y, FIRST(y), y - FIRST(reference))
    return more(y, most=1)


@template("jitted helper", "helper functions", 3)
def NAME_by_KIND(x: F[S]):
    """Apply a jitted function with a static argument `KIND`."""
    S = shape(1, 3, 12)
    KIND, A = choose("axis", "mode", "degree", "gain"), between(0, len(S) - 1)
    NAME = {
        "axis": choose("summarize", "pool", "reduce_axis"),
        "mode": choose("activate", "rectify", "loss_terms"),
        "degree": choose("iterate", "refine", "features"),
        "gain": choose("amplify", "blend", "residual_step"),
    }[KIND]
    with module:
        if KIND == "axis":

            @partial(jax.jit, static_argnames=("axis",))
            def NAME(x: F[S], axis):
                inner: F[S] = mapped(x, 2)
                return choose(jnp.mean, jnp.max, jnp.min, jnp.std, jnp.ptp)(inner, axis=axis)
        elif KIND == "mode":

            @partial(jax.jit, static_argnames=("mode",))
            def NAME(x: F[S], mode):
                inner: F[S] = choose(mapped(x, 2), prepared(x), normalised(x))
                if mode == "soft":
                    return choose(jax.nn.softplus(inner), jnp.tanh(inner), jax.nn.silu(inner))
                return choose(jnp.maximum(inner, 0.1 * inner), jnp.clip(inner, -1.0, 1.0))
        elif KIND == "degree":

            @partial(jax.jit, static_argnames=("degree",))
            def NAME(x: F[S], degree):
                result: F[S] = mapped(x, 2)
                for _ in range(degree):
                    result = choose(jnp.tanh(result) + 0.5 * x, 0.5 * (result + x))
                return result
        else:

            @partial(jax.jit, static_argnames=("gain",), inline=True)
            def NAME(x: F[S], gain):
                inner: F[S] = mapped(x, 2)
                return choose(gain * inner + x, x + gain * (inner - x), gain * inner)

    if KIND == "axis":
        y: F[S[1:]] = choose(NAME(x, A), NAME(x, A) - NAME(-x, A), NAME(x, axis=A))
        return more(y, most=1)
    if KIND == "mode":
        first = NAME(x, "soft")
        second = NAME(x, "hard")
    elif KIND == "degree":
        first = NAME(x, 2)
        second = NAME(x, 3)
    else:
        first = NAME(x, 0.5)
        second = NAME(x, 2.0)
    if chance(0.3):
        return first, second
    y: F[S] = choose(first - second, 0.5 * (first + second), jnp.stack([first, second]), first)
    return more(y, most=1)


@template("recursive helper", "helper functions", 2)
def recursive_KIND(x: F[B, N]):
    """Transform values recursively."""
    N, B, KIND = choose(4, 8, 16), shape(0, 1, 6), choose("halves", "depth", "butterfly")
    NAME = {"halves": "combine_halves", "depth": "refine", "butterfly": "haar"}[KIND]
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
                        left * right,
                        jnp.logaddexp(left, right),
                        jnp.hypot(left, right),
                        left + right,
                    )
                )
        elif KIND == "depth":

            def NAME(values: F[B, N], depth):
                if depth == 0:
                    return values
                inner: F[B, N] = smooth(values)
                return NAME(choose(values - 0.1 * inner, 0.5 * (values + inner), inner), depth - 1)
        else:

            def NAME(values):
                """Mix the halves of the last axis at all scales."""
                count = values.shape[-1]
                if count == 1:
                    return values
                left = values[..., : count // 2]
                right = values[..., count // 2 :]
                SCALE = choose("0.5", "math.sqrt(0.5)")
                low = NAME(choose(SCALE * (left + right), left + right))
                high = choose(NAME(SCALE * (left - right)), SCALE * (left - right))
                return jnp.concatenate([low, high], axis=-1)

    inputs: F[B, N] = prepared(x)
    if KIND == "depth":
        y: F[B, N] = NAME(inputs, between(2, 5))
    elif KIND == "halves":
        y: F[B] = NAME(inputs)
    else:
        y: F[B, N] = NAME(inputs)
    return more(y, most=2)


@template("function of functions", "helper functions", 3)
def KIND_of_FIRST_and_SECOND(x: F[S]):
    """Build a function from FIRST and SECOND, and apply it."""
    S, KIND = shape(0, 3, 12), choose("composition", "repetition", "factory", "residual", "blend")
    FIRST, SECOND = sample(["envelope", "profile", "response", "carrier", "basis", "wave"], 2)
    with module:
        for FUNCTION in (FIRST, SECOND):

            def FUNCTION(u: F[S]):
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
                    x = choose(function(x), jnp.tanh(function(x)), x - 0.1 * function(x))
                return x
        elif KIND == "factory":

            def make_layer(function, scale):
                """Return a scaled version of a function."""

                def layer(x):
                    return choose(scale * function(x) + x, scale * function(x), function(scale * x))

                return layer
        elif KIND == "blend":

            def blend(function, x, weight=0.5):
                """Blend x with a function of it."""
                return weight * function(x) + (1.0 - weight) * x
        else:

            def with_residual(function, x):
                """Return x plus a function of it."""
                return x + choose(function(x), 0.5 * function(x), 0.1 * function(x))

    if KIND == "composition":
        y: F[S] = choose(compose(FIRST, SECOND), compose(SECOND, jnp.tanh, FIRST))(x)
    elif KIND == "repetition":
        y: F[S] = repeat(SECOND, FIRST(x), between(2, 3))
    elif KIND == "factory":
        first_layer = make_layer(FIRST, choose(0.5, 2.0, 0.1))
        second_layer = make_layer(SECOND, choose(0.5, 1.5, 0.1))
        y: F[S] = choose(second_layer(first_layer(x)), first_layer(x) * second_layer(x))
    elif KIND == "blend":
        first_blend = partial(blend, FIRST, weight=choose(0.1, 0.3, 0.7))
        y: F[S] = choose(first_blend(blend(SECOND, x)), first_blend(x) - SECOND(x))
    else:
        y: F[S] = with_residual(SECOND, with_residual(FIRST, x))
    return more(y, most=1)


@template("constants and helpers", "helper functions", 3)
def NAME_with_CONSTANTS(x: F[S, N]):
    """Apply NAME with constants of the module."""
    N, S = between(3, 5), shape(0, 2, 10)
    NAME, CONSTANTS = choose(
        *(("weigh", "weights"), ("project", "direction"), ("standardize", "statistics")),
        *(("smooth_rows", "taps"), ("evaluate", "coefficients")),
    )
    NUMBERS = tuple([choose(0.25, 0.5, 1.0, 1.5, -0.5, 2.0, -1.0, 0.75) for K in range(N)])
    SCALES = tuple([choose(0.25, 0.5, 1.5, 2.0, 3.0) for K in range(N)])
    with module:
        WEIGHTS = NUMBERS
        DEVIATIONS = SCALES
        RATE = choose(0.1, 0.5, 2.0)

        def NAME(x: F[S, N]):
            """TITLE."""
            weights = choose(jnp.array(WEIGHTS, x.dtype), jnp.asarray(WEIGHTS, x.dtype))
            deviations = jnp.array(DEVIATIONS, x.dtype)
            if NAME == "weigh":
                return choose(x * weights, RATE * x * weights, x * weights / deviations)
            if NAME == "project":
                along = x @ weights
                return choose(along[..., None] * weights, x - RATE * along[..., None] * weights)
            if NAME == "standardize":
                return choose((x - weights) / deviations, (x - weights) / (deviations + RATE))
            if NAME == "smooth_rows":
                padded = jnp.pad(x, [(0, 0)] * len(S) + [(1, 1)], mode="edge")
                return choose(
                    WEIGHTS[0] * padded[..., :-2] + WEIGHTS[1] * x + WEIGHTS[2] * padded[..., 2:],
                    x - RATE * (padded[..., 2:] - padded[..., :-2]),
                )
            return choose(weights * x**2 + RATE * x, weights * jnp.exp(-RATE * jnp.square(x)))

    TITLE = {
        "weigh": "Weigh the columns",
        "project": "Project on a direction, or remove it",
        "standardize": "Standardize columns with known statistics",
        "smooth_rows": "Convolve each row with the taps",
        "evaluate": "Evaluate a function with the coefficients",
    }[NAME]
    y: F[S, N] = choose(NAME(x), NAME(x) - x, NAME(x) + RATE * x)
    return more(y, most=2)


@template("gradients of examples", "nested transformations", 3)
def per_example_KIND_of_NAME(params: F[S], xs: F[B, S]):
    """Compute the gradients of the NAME for each example."""
    B, S, NAME = size(2, 8), shape(0, 2, 6), choose("loss", "energy", "objective")
    KIND = choose("grad", "value_and_grad", "jit", "argnums")

    def NAME(u: F[S], v: F[S]):
        terms: F[S] = smooth(u, v)
        value: F[()] = formula(LOSS)
        return value

    if KIND == "value_and_grad":
        values, slopes = jax.vmap(jax.value_and_grad(NAME), in_axes=(None, 0))(params, xs)
        if chance(0.4):
            return values, slopes
        grads: F[B, S] = slopes * jax.nn.softmax(values).reshape(-1, *([1] * len(S)))
    elif KIND == "grad":
        grads: F[B, S] = jax.vmap(jax.grad(NAME), in_axes=(None, 0))(params, xs)
    elif KIND == "jit":
        grads: F[B, S] = jax.vmap(jax.jit(jax.grad(NAME)), in_axes=(None, 0))(params, xs)
    else:
        grads: F[B, S] = jax.vmap(jax.grad(NAME, argnums=1), in_axes=(None, 0))(params, xs)
    if chance(0.3):
        norms = jnp.sqrt(
            jnp.sum(jnp.square(grads), axis=tuple(range(1, len(S) + 1)), keepdims=True)
        )
        grads: F[B, S] = grads / jnp.maximum(norms / choose(0.5, 1.0), 1.0)
    if chance(0.2):
        return more(grads, most=1)
    average: F[S] = choose(
        jnp.mean(grads, axis=0),
        jnp.sum(grads, axis=0),
        jnp.mean(grads, axis=0),
        jnp.mean(grads, axis=0) / (jnp.std(grads, axis=0) + 1e-3),
    )
    y: F[S] = choose(params - choose(0.1, 0.01) * average, average)
    return more(y, most=1)


@template("derivatives of derivatives", "nested transformations", 3)
def KIND_of_NAME(x: W[S], y: W[S]):
    """Compute derivatives of derivatives of the NAME."""
    S, NAME = shape(0, 1, 8), choose("potential", "energy", "action")
    KIND = choose("grad_grad", "grad_norm", "jvp_grad", "jacfwd_grad", "vjp_jvp", "jit_grad")

    def NAME(u: W[S], v: W[S]):
        terms: W[S] = smooth(u, v)
        value: F[()] = formula(LOSS)
        return value

    def penalty(u):
        slope = jax.grad(NAME)(u, y)
        return choose(
            jnp.sum(slope**2), jnp.sqrt(jnp.sum(slope**2) + 1e-3), 0.5 * jnp.sum(slope**2)
        )

    def change(u):
        return jax.jvp(lambda v: NAME(u, v), (y,), (u,))[1]

    if KIND in ("grad_grad", "grad_norm"):
        z: W[S] = jax.grad(penalty)(x)
    elif KIND == "jvp_grad":
        z: W[S] = jax.jvp(jax.grad(NAME), (x, y), (y, x))[1]
    elif KIND == "jacfwd_grad":
        mixed_derivatives = jax.jacfwd(jax.grad(NAME), argnums=1)(x, y)
        z: W[S] = mixed_derivatives @ y if S else mixed_derivatives * y
    elif KIND == "vjp_jvp":
        z: W[S] = jax.grad(change)(x)
    else:
        value, slope = jax.jit(jax.value_and_grad(NAME))(x, y)
        z: W[S] = choose(slope / (1.0 + value**2), x - 0.1 * slope, slope)
    total: W[S] = choose(z, x - 0.1 * z, z + y)
    return more(total, most=1)


@template("scan under vmap", "nested transformations", 3)
def batched_KIND(xs: F[B, N, S], initial: F[S]):
    """Run a loop over each sequence of a batch."""
    B, N, S = size(2, 6), size(2, 8), shape(0, 1, 6)
    KIND = choose("scan", "fori", "cond", "checkpoint")
    NAME = choose("filter_one", "run_one", "summarize")

    def NAME(row: F[N, S]):
        def advance(carry: F[S], x: F[S]):
            drive: F[S] = mixed(carry, x)
            new = choose(
                jnp.tanh(drive),
                0.9 * carry + 0.1 * drive,
                0.5 * carry + jnp.tanh(x),
                carry + 0.1 * (x - carry),
                jnp.maximum(0.9 * carry, x),
                jnp.tanh(carry + x),
            )
            if KIND == "cond":
                new = lax.cond(jnp.sum(x) > 0.0, lambda v: v, lambda v: 0.5 * v, new)
            return new, choose(new, new - x, jnp.square(new - x))

        if KIND == "fori":
            return lax.fori_loop(0, N, lambda i, carry: advance(carry, row[i])[0], initial)
        if KIND == "checkpoint":
            final, outputs = lax.scan(jax.checkpoint(advance), initial, row)
        else:
            final, outputs = lax.scan(advance, initial, row)
        return choose(
            jnp.mean(outputs, axis=0),
            final,
            jnp.max(outputs, axis=0),
            final - outputs[0],
            jnp.sum(outputs, axis=0),
        )

    y: F[B, S] = jax.vmap(NAME)(xs)
    if chance(0.4):
        slope = jax.grad(lambda rows: jnp.mean(jnp.square(jax.vmap(NAME)(rows))))(xs)
        return choose(slope, xs - 0.1 * slope, jnp.sum(slope, axis=1))
    return more(y, most=2)


@template("branches in transformations", "nested transformations", 3)
def NAME_under_KIND(xs: F[N, S], flags: BOOL[N]):
    """Choose a branch for each row under KIND."""
    N, S, NAME = size(2, 8), shape(0, 1, 6), choose("choose_one", "process_one")
    KIND = choose("vmap", "map", "scan", "vmap_of_jit")

    def NAME(x: F[S], flag):
        def on_true(v: F[S]):
            return choose(mapped(v, 3), activated(v))

        def on_false(v: F[S]):
            return choose(smooth(v), v, 0.1 * v, -v)

        picked = lax.cond(flag, on_true, on_false, x)
        return choose(picked, picked, x + picked, picked - x)

    if KIND == "vmap":
        y: F[N, S] = jax.vmap(NAME)(xs, flags)
    elif KIND == "vmap_of_jit":
        y: F[N, S] = jax.vmap(jax.jit(NAME))(xs, flags)
    elif KIND == "map":
        y: F[N, S] = lax.map(lambda row: NAME(*row), (xs, flags))
    else:

        def advance(total, row):
            picked = NAME(*row)
            return choose(
                total + picked, 0.9 * total + 0.1 * picked, jnp.maximum(total, picked)
            ), picked

        last, outputs = lax.scan(advance, jnp.zeros_like(xs[0]), (xs, flags))
        if chance(0.5):
            return last, outputs
        y: F[N, S] = choose(outputs - last, outputs)
    return more(y, most=2)


@template("unrolled optimisation", "nested transformations", 3)
def optimize_NAME(start: W[S], target: W[S]):
    """Run gradient descent on the NAME in a loop."""
    S, N, RATE = shape(0, 2, 8), between(2, 10), choose(0.02, 0.05, 0.01)
    NAME, FORM = choose("loss", "objective", "energy"), choose("fori", "scan", "unrolled")

    def NAME(u: W[S], v: W[S]):
        terms: W[S] = smooth(u, v)
        return choose(
            jnp.mean(jnp.log1p(terms**2)),
            jnp.mean(jnp.sqrt(1.0 + terms**2)),
            jnp.mean(jnp.tanh(terms) ** 2),
        )

    def optimize(theta):
        slope = jax.grad(NAME)
        if FORM == "fori":
            return lax.fori_loop(0, N, lambda _, value: value - RATE * slope(value, target), theta)
        if FORM == "scan":

            def advance(value, _):
                new = value - RATE * slope(value, target)
                return new, None

            final, _ = lax.scan(advance, theta, None, length=N)
            return final
        for _ in range(min(N, 4)):
            theta = theta - RATE * slope(theta, target)
        return theta

    y: W[S] = optimize(start)
    if chance(0.3):
        return jax.jvp(optimize, (start,), (choose(target, jnp.ones_like(start)),))
    if chance(0.3):
        return y, NAME(y, target)
    z: W[S] = choose(y, y - target, y - start)
    return more(z, most=1)
