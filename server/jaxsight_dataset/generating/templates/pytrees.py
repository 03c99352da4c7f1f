"""Templates of parameters in containers, and of optimizers."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

DYNAMICS = {
    "velocity": """
        pull = choose(drive - one, drive - jnp.sin(one), -one + 0.1 * drive, drive - one**3)
        velocity = choose(other + RATE * pull, (1.0 - RATE) * other + RATE * pull)
        CLASS(one + RATE * choose(velocity, other), velocity)
        """,
    "trend": """
        level = choose(RATE * drive + (1.0 - RATE) * (one + other), one + other + RATE * drive)
        CLASS(level, (1.0 - RATE) * other + RATE * (level - one))
        """,
    "weight": """
        weight = other + choose(1.0, jnp.exp(-jnp.square(drive)))
        CLASS(one + (drive - one) / weight, weight)
        """,
}
"""What becomes of two fields of a state, by the name of the second one."""

OPTIMIZERS = {
    "momentum": ("DECAY * m + g", "m"),
    "signed": ("DECAY * m + REST * g", "m / (jnp.abs(m) + 0.1)"),
    "rmsprop": ("DECAY * m + REST * g**2", "g * lax.rsqrt(m + 1e-3)"),
    "adagrad": ("m + g**2", "g / jnp.sqrt(m + 1e-3)"),
    "adam": ("", ""),
}
"""The new moment and the step of optimizers with one moment, from an old moment and a gradient."""


@template("dictionary of parameters", "pytrees", 3)
def FORM_layers(params: PARAMS, x: F[B, SIZES[0]]):
    """Apply dense layers whose parameters are in FORM containers."""
    B, SIZES = size(2, 8), [size(2, 12) for K in range(4)]
    FORM, COUNT = choose("nested", "listed", "paired"), between(1, 3)
    LAYERS = [(array(F, SIZES[K], SIZES[K + 1]), array(F, SIZES[K + 1])) for K in range(COUNT)]
    PARAMS = {
        "nested": dict([("layer_" + str(K), {"w": V, "b": U}) for K, (V, U) in enumerate(LAYERS)]),
        "listed": [{"w": V, "b": U} for V, U in LAYERS],
        "paired": LAYERS,
    }[FORM]
    y: F[B, SIZES[0]] = x
    for K in range(COUNT):
        if FORM == "paired":
            kernel_K, bias_K = params[K]
        elif FORM == "nested":
            kernel_K, bias_K = params["layer_K"]["w"], params["layer_K"]["b"]
        else:
            kernel_K, bias_K = params[K]["w"], params[K]["b"]
        hidden_K: F[B, SIZES[1]] = y @ kernel_K / sqrt(SIZES[K]) + bias_K
        y: F[B, SIZES[1]] = hidden_K if K == COUNT - 1 else activated(hidden_K)
    return more(y, most=2, style="layer")


@template("tree map", "pytrees", 2)
def NAME(params: TREE, updates: TREE, scale: F[()]):
    """TITLE."""
    LEAVES = choose("w b", "scale shift gain", "q k v", "mean std", "left right center").split()
    TREE = dict([(LEAF, array(F, shape(0, 2, 12))) for LEAF in LEAVES])
    KIND, NAME, TITLE = choose(
        ("map", "apply_updates", "Apply updates to a tree of parameters"),
        ("map", "combine_trees", "Combine the leaves of two trees"),
        ("clip", "clip_by_global_norm", "Scale a tree to a global norm"),
        ("flat", "flatten_tree", "Concatenate the leaves of a tree"),
    )
    leaves = choose(jax.tree.leaves(params), jax.tree.flatten(params)[0])
    if KIND == "flat":
        y: F[2] = jnp.concatenate([leaf.ravel() for leaf in leaves])
        return more(y, most=2)
    if KIND == "clip":
        norm = jnp.sqrt(sum([jnp.sum(leaf**2) for leaf in leaves]) + 1e-3)
        return jax.tree.map(
            lambda leaf: choose(leaf / jnp.maximum(norm, 1.0), leaf * scale / norm), params
        )

    def combine(a: F[()], b: F[()]):
        return choose(a - 0.1 * b, a + scale * b) if NAME == "apply_updates" else smooth(a, b)

    result = jax.tree.map(combine, params, updates)
    return choose(
        result,
        jax.tree.map(jnp.mean, result),
        jax.tree.map(lambda leaf, start: leaf - start, result, params),
    )


@template("optimizer", "pytrees", 4)
def KIND_step(params: TREE, grads: TREE, moments: SQUARES, momentum: TREE, step: INDEX[below(20)]):
    """Update parameters with KIND."""
    D = dtype("float32", "float32", "float64", "bfloat16")
    LEAVES = choose("w b", "kernel bias scale", "q k v")
    SHAPES = [(LEAF, shape(0, 2, 12)) for LEAF in LEAVES.split()]
    TREE = dict([(LEAF, array(D, SIZE)) for LEAF, SIZE in SHAPES])
    SQUARES = dict([(LEAF, array(D, SIZE, "positive")) for LEAF, SIZE in SHAPES])
    KIND = choose(*OPTIMIZERS)
    RATE, DECAY, LIMIT = choose(0.1, 0.01, 0.05, 0.3), choose(0.9, 0.95, 0.8), choose(0.5, 1.0, 2.0)
    REST = round(1 - DECAY, 2)
    SCHEDULE, BEFORE = choose("", "decay"), choose("", "", "clip", "decay")
    if SCHEDULE == "decay":
        rate = choose(RATE / (1.0 + 0.1 * step), RATE * jnp.exp(-0.1 * step))
    else:
        rate = RATE
    if BEFORE == "clip":
        norm = jnp.sqrt(sum([jnp.sum(g**2) for g in jax.tree.leaves(grads)]) + 1e-3)
        slopes = jax.tree.map(lambda g: g * (LIMIT / jnp.maximum(norm, LIMIT)), grads)
    elif BEFORE == "decay":
        slopes = jax.tree.map(lambda g, p: g + choose(0.01, 0.1) * p, grads, params)
    else:
        slopes = grads
    if KIND == "adam":
        mu = jax.tree.map(lambda m, g: DECAY * m + REST * g, momentum, slopes)
        nu = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, moments, slopes)
        steps = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + 1e-3), mu, nu)
        state = (mu, nu)
    else:
        STATE, STEP = [TEXT.replace("DECAY", str(DECAY)) for TEXT in OPTIMIZERS[KIND]]
        STATE = STATE.replace("REST", str(REST))
        old = momentum if KIND in ("momentum", "signed") else moments
        state = jax.tree.map(lambda m, g: STATE, old, slopes)
        steps = jax.tree.map(lambda m, g: STEP, state, slopes)
    new_params = jax.tree.map(lambda p, s: p - rate * s, params, steps)
    return choose((new_params, state), (new_params, state), new_params)


@template("named tuple", "pytrees", 3)
def STEP_LOWER_LOOP(first: F[S], second: F[S, "positive"], force: F[S]):
    """Advance a LOWER of FIELD and OTHER."""
    S, LOOP, RATE = shape(0, 2, 12), choose("fori", "loop", "scan", "once"), choose(0.1, 0.2, 0.05)
    CLASS, STEP, FIELD, OTHER = choose(
        ("State", "advance", "position", "velocity"),
        ("Forecast", "update", "level", "trend"),
        ("Average", "track", "mean", "weight"),
    )
    LOWER, N = CLASS.lower(), between(2, 4)
    with module:

        class CLASS(NamedTuple):
            """CLASS of FIELD and OTHER."""

            FIELD: jax.Array
            OTHER: jax.Array

        def STEP(state, drive: F[S]):
            one: F[S] = state.FIELD
            other: F[S] = state.OTHER
            following: F[S] = formula(DYNAMICS[OTHER])
            return following

    state = CLASS(first, second)
    if LOOP == "fori":
        state = lax.fori_loop(0, N, lambda _, now: STEP(now, force), state)
    elif LOOP == "loop":
        for _ in range(N):
            state = STEP(state, force)
    elif LOOP == "scan":
        state, path = lax.scan(lambda now, _: (STEP(now, force), now.FIELD), state, None, length=N)
        return choose((state.FIELD, path), (state, path))
    else:
        state = STEP(state, force)
    return choose(
        (state.FIELD, state.OTHER),
        state,
        state.FIELD - force,
        state.FIELD * state.OTHER,
    )
