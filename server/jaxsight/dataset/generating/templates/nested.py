"""Templates of transformations inside of each other."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("gradients of examples", "nested transformations", 3)
def per_example_KIND_of_NAME(params: F[S], xs: F[B, S]):
    """Compute the gradients of a NAME for each example."""
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
    """Compute derivatives of derivatives of a NAME."""
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
    """Run a loop for each sequence of a batch (KIND)."""
    B, N, S = size(2, 6), size(2, 8), shape(0, 1, 6)
    KIND, NAME = (
        choose("scan", "fori", "cond", "checkpoint"),
        choose("filter_one", "run_one", "summarize"),
    )

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
    """Run gradient descent on a NAME in a loop (FORM)."""
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
