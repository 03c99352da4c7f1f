"""Templates of several functions, and of transformations inside each other."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

LOSS = """
    choose(
        jnp.mean(terms**2),
        jnp.sum(jnp.square(terms)),
        jnp.mean(jnp.log1p(terms**2)),
        jax.nn.logsumexp(terms),
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
    return more(y, most=1)


@template("jitted helper", "helper functions", 3)
def NAME_by_KIND(x: F[S]):
    """Apply a jitted function with a static argument `KIND`."""
    S = shape(1, 3, 12)
    KIND, NAME = choose(("mode", "activate"), ("degree", "iterate"))
    with module:
        if KIND == "mode":

            @partial(jax.jit, static_argnames=("mode",))
            def NAME(x: F[S], mode):
                inner: F[S] = choose(mapped(x, 2), prepared(x), normalised(x))
                if mode == "soft":
                    return choose(jax.nn.softplus(inner), jnp.tanh(inner), jax.nn.silu(inner))
                return choose(jnp.maximum(inner, 0.1 * inner), jnp.clip(inner, -1.0, 1.0))
        else:

            @partial(jax.jit, static_argnames=("degree",))
            def NAME(x: F[S], degree):
                result: F[S] = mapped(x, 2)
                for _ in range(degree):
                    result = choose(jnp.tanh(result) + 0.5 * x, 0.5 * (result + x))
                return result

    FIRST, SECOND = ("'soft'", "'hard'") if KIND == "mode" else ("2", "3")
    first = NAME(x, FIRST)
    second = NAME(x, SECOND)
    if chance(0.3):
        return first, second
    y: F[S] = choose(first - second, 0.5 * (first + second), first)
    return more(y, most=1)


@template("function of functions", "helper functions", 3)
def KIND_of_FIRST_and_SECOND(x: F[S]):
    """Build a function from FIRST and SECOND, and apply it."""
    S, KIND = shape(0, 3, 12), choose("composition", "blend")
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
        else:

            def blend(function, x, weight=0.5):
                """Blend x with a function of it."""
                return weight * function(x) + (1.0 - weight) * x

    if KIND == "composition":
        y: F[S] = choose(compose(FIRST, SECOND), compose(SECOND, jnp.tanh, FIRST))(x)
    else:
        first_blend = partial(blend, FIRST, weight=choose(0.1, 0.3, 0.7))
        y: F[S] = choose(first_blend(blend(SECOND, x)), first_blend(x) - SECOND(x))
    return more(y, most=1)


@template("gradients of examples", "nested transformations", 3)
def per_example_KIND_of_NAME(params: F[S], xs: F[B, S]):
    """Compute the gradients of the NAME for each example."""
    B, S, NAME = size(2, 8), shape(0, 2, 6), choose("loss", "energy", "objective")
    KIND = choose("grad", "value_and_grad", "argnums")

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
    else:
        grads: F[B, S] = jax.vmap(jax.grad(NAME, argnums=1), in_axes=(None, 0))(params, xs)
    if chance(0.3):
        norms = jnp.sqrt(
            jnp.sum(jnp.square(grads), axis=tuple(range(1, len(S) + 1)), keepdims=True)
        )
        grads: F[B, S] = grads / jnp.maximum(norms / choose(0.5, 1.0), 1.0)
    average: F[S] = choose(jnp.mean(grads, axis=0), jnp.sum(grads, axis=0))
    y: F[S] = choose(params - choose(0.1, 0.01) * average, average)
    return more(y, most=1)


@template("scan under vmap", "nested transformations", 3)
def batched_KIND(xs: F[B, N, S], initial: F[S]):
    """Run a loop over each sequence of a batch."""
    B, N, S = size(2, 6), size(2, 8), shape(0, 1, 6)
    KIND = choose("scan", "fori", "cond", "checkpoint")
    NAME = choose("filter_one", "run_one", "summarize")

    def NAME(row: F[N, S]):
        def advance(carry: F[S], x: F[S]):
            drive: F[S] = mixed(carry, x)
            new = choose(jnp.tanh(drive), 0.9 * carry + 0.1 * drive, jnp.maximum(carry, x))
            if KIND == "cond":
                new = lax.cond(jnp.sum(x) > 0.0, lambda v: v, lambda v: 0.5 * v, new)
            return new, choose(new, new - x, jnp.square(new - x))

        if KIND == "fori":
            return lax.fori_loop(0, N, lambda i, carry: advance(carry, row[i])[0], initial)
        if KIND == "checkpoint":
            final, outputs = lax.scan(jax.checkpoint(advance), initial, row)
        else:
            final, outputs = lax.scan(advance, initial, row)
        return choose(jnp.mean(outputs, axis=0), final, jnp.max(outputs, axis=0))

    y: F[B, S] = jax.vmap(NAME)(xs)
    if chance(0.4):
        slope = jax.grad(lambda rows: jnp.mean(jnp.square(jax.vmap(NAME)(rows))))(xs)
        return choose(slope, xs - 0.1 * slope, jnp.sum(slope, axis=1))
    return more(y, most=2)


@template("branches in transformations", "nested transformations", 3)
def NAME_under_KIND(xs: F[N, S], flags: BOOL[N]):
    """Choose a branch for each row under KIND."""
    N, S, NAME = size(2, 8), shape(0, 1, 6), choose("choose_one", "process_one")
    KIND = choose("vmap", "map", "scan")

    def NAME(x: F[S], flag):
        def on_true(v: F[S]):
            return choose(mapped(v, 3), activated(v))

        def on_false(v: F[S]):
            return choose(smooth(v), v, 0.1 * v, -v)

        picked = lax.cond(flag, on_true, on_false, x)
        return choose(picked, picked, x + picked, picked - x)

    if KIND == "vmap":
        y: F[N, S] = jax.vmap(NAME)(xs, flags)
    elif KIND == "map":
        y: F[N, S] = lax.map(lambda row: NAME(*row), (xs, flags))
    else:

        def advance(total, row):
            picked = NAME(*row)
            return choose(total + picked, jnp.maximum(total, picked)), picked

        last, outputs = lax.scan(advance, jnp.zeros_like(xs[0]), (xs, flags))
        if chance(0.5):
            return last, outputs
        y: F[N, S] = choose(outputs - last, outputs)
    return more(y, most=2)
