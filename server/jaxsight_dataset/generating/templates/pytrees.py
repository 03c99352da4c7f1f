"""Templates of parameters in containers, and of optimizers."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

DYNAMICS = {
    "velocity": """
        pull = choose(drive - one, drive - jnp.sin(one), -one + 0.1 * drive, drive - one**3)
        velocity = choose(other + RATE * pull, (1.0 - RATE) * other + RATE * pull)
        CLASS(one + RATE * choose(velocity, other), velocity)
        """,
    "variance": """
        gain = choose(other / (other + 1.0), other / (other + 0.5))
        CLASS(
            one + gain * (drive - one),
            choose((1.0 - gain) * other + 0.01, (1.0 - gain) * other),
        )
        """,
    "trend": """
        level = choose(RATE * drive + (1.0 - RATE) * (one + other), one + other + RATE * drive)
        CLASS(level, (1.0 - RATE) * other + RATE * (level - one))
        """,
    "predators": """
        eaten = choose(0.5 * one * other, one * other / (1.0 + jnp.abs(one)))
        CLASS(
            one + RATE * (one * choose(1.0 - one, 1.0) - eaten),
            other + RATE * (eaten - 0.4 * other + 0.1 * drive),
        )
        """,
    "integral": """
        response = choose(2.0 * one + 0.5 * other, jnp.clip(2.0 * one + other, -1.0, 1.0))
        CLASS(one + RATE * (drive - response), other + RATE * one)
        """,
    "weight": """
        weight = other + choose(1.0, jnp.exp(-jnp.square(drive)))
        CLASS(one + (drive - one) / weight, weight)
        """,
}
"""What becomes of two fields of a state, by the name of the second one."""

OPTIMIZERS = {
    "sgd": ("", ""),
    "momentum": ("DECAY * m + g", "m"),
    "nesterov": ("DECAY * m + g", "g + DECAY * m"),
    "signed": ("DECAY * m + REST * g", "m / (jnp.abs(m) + 0.1)"),
    "averaged": ("DECAY * m + REST * g", "0.5 * (m + g)"),
    "rmsprop": ("DECAY * m + REST * g**2", "g * lax.rsqrt(m + 1e-3)"),
    "adagrad": ("m + g**2", "g / jnp.sqrt(m + 1e-3)"),
    "adam": ("", ""),
    "adamw": ("", ""),
    "nadam": ("", ""),
    "adadelta": ("DECAY * m + REST * g**2", "g * jnp.sqrt(0.1 / (m + 1e-3))"),
    "adamax": ("jnp.maximum(DECAY * m, jnp.abs(g))", "g / (m + 1e-3)"),
}
"""The new moment and the step of optimizers with one moment, from an old moment and a gradient."""


@template("dictionary of parameters", "pytrees", 3)
def FORM_layers(params: PARAMS, x: F[B, SIZES[0]]):
    """Apply dense layers whose parameters are in FORM containers."""
    B, SIZES = size(2, 8), [size(2, 12) for K in range(4)]
    FORM = choose("nested", "listed", "flat", "paired")
    COUNT, COMMON = between(1, 3), choose("w", "kernel")
    LAYERS = [(array(F, SIZES[K], SIZES[K + 1]), array(F, SIZES[K + 1])) for K in range(COUNT)]
    PARAMS = {
        "nested": dict([("layer_" + str(K), {"w": V, "b": U}) for K, (V, U) in enumerate(LAYERS)]),
        "listed": [{"w": V, "b": U} for V, U in LAYERS],
        "flat": dict(
            [("w_" + str(K), V) for K, (V, U) in enumerate(LAYERS)]
            + [("b_" + str(K), U) for K, (V, U) in enumerate(LAYERS)]
        ),
        "paired": [(V, U) for V, U in LAYERS],
    }[FORM]
    y: F[B, SIZES[0]] = x
    for K in range(COUNT):
        if FORM == "paired":
            kernel_K, bias_K = params[K]
        elif FORM == "nested":
            kernel_K, bias_K = params["layer_K"]["w"], params["layer_K"]["b"]
        elif FORM == "listed":
            kernel_K, bias_K = params[K]["w"], params[K]["b"]
        else:
            kernel_K, bias_K = params["w_K"], params["b_K"]
        hidden_K: F[B, SIZES[1]] = y @ kernel_K / sqrt(SIZES[K]) + bias_K
        y: F[B, SIZES[1]] = hidden_K if K == COUNT - 1 else activated(hidden_K)
    return more(y, most=2, style="layer")


@template("tree map", "pytrees", 2)
def NAME(params: TREE, updates: TREE, scale: F[()]):
    """TITLE."""
    LEAVES = choose("w b", "scale shift gain", "q k v", "mean std", "left right center").split()
    TREE, FIRST = dict([(LEAF, array(F, shape(0, 2, 12))) for LEAF in LEAVES]), LEAVES[0]
    NAME, TITLE = choose(
        *(("apply_updates", "Apply updates to a tree of parameters"),),
        *(("average_trees", "Average two trees of parameters"),),
        *(("clip_by_global_norm", "Scale a tree to a global norm"),),
        *(("compare_trees", "Compare the leaves of two trees"),),
        *(("combine_trees", "Combine the leaves of two trees"),),
    )
    if NAME == "clip_by_global_norm":
        squares = [jnp.sum(choose(jnp.square(leaf), leaf**2)) for leaf in jax.tree.leaves(params)]
        norm = choose(jnp.sqrt(sum(squares) + 1e-3), jnp.sqrt(sum(squares)))
        return jax.tree.map(
            lambda leaf: choose(
                leaf / jnp.maximum(norm, 1.0),
                leaf * scale / norm,
                jnp.where(norm > 1.0, leaf / norm, leaf),
            ),
            params,
        )

    def combine(a: F[()], b: F[()]):
        if NAME == "apply_updates":
            return choose(a - 0.1 * b, a + scale * b, a + b)
        if NAME == "average_trees":
            return choose(
                0.9 * a + 0.1 * b, 0.5 * (a + b), a + 0.01 * (b - a), scale * a + (1.0 - scale) * b
            )
        if NAME == "compare_trees":
            return choose(
                jnp.abs(a - b), jnp.square(a - b), jnp.hypot(a, b), jnp.mean((a - b) ** 2)
            )
        return smooth(a, b)

    result = jax.tree.map(combine, params, updates)
    return choose(
        result,
        result,
        jax.tree.map(jnp.mean, result),
        jax.tree.map(lambda leaf: choose(jnp.tanh(leaf), jnp.square(leaf), scale * leaf), result),
        jax.tree.map(lambda leaf, start: leaf - start, result, params),
    )


@template("tree reductions", "pytrees", 2)
def NAME(params: TREE, updates: TREE, scale: F[()]):
    """TITLE."""
    LEAVES = choose("w b", "scale shift gain", "q k v", "mean std", "left right center").split()
    TREE, FIRST = dict([(LEAF, array(F, shape(0, 2, 12))) for LEAF in LEAVES]), LEAVES[0]
    NAME, TITLE = choose(
        *(("tree_dot", "Compute the inner product of two trees"),),
        *(("tree_norm", "Compute the norm of a tree"), ("flatten_tree", "Concatenate leaves")),
        *(("tree_losses", "Compute a loss of each leaf"),),
        *(("tree_cosine", "Compute the cosine of two trees"),),
    )
    leaves = choose(jax.tree.leaves(params), jax.tree.flatten(params)[0])
    if NAME == "tree_norm":
        squares = [jnp.sum(choose(jnp.square(leaf), leaf**2)) for leaf in leaves]
        return choose(
            jnp.sqrt(sum(squares)),
            jnp.sqrt(sum(squares) + 1e-3),
            scale * jnp.sqrt(sum(squares)),
            0.5 * sum(squares),
            scale * sum(squares),
        )
    if NAME == "flatten_tree":
        y: F[2] = jnp.concatenate([choose(leaf.ravel(), leaf.reshape(-1)) for leaf in leaves])
        return more(y, most=2)
    terms = jax.tree.map(
        lambda a, b: (
            choose(
                choose(
                    jnp.mean((a - b) ** 2),
                    jnp.sum(jnp.abs(a - b)),
                    jnp.mean(jnp.log1p((a - b) ** 2)),
                ),
                jnp.max(jnp.abs(a - b)),
            )
            if NAME == "tree_losses"
            else choose(jnp.sum(a * b), jnp.vdot(a, b))
        ),
        params,
        updates,
    )
    total = choose(sum(jax.tree.leaves(terms)), jax.tree.reduce(lambda a, b: a + b, terms))
    if NAME == "tree_cosine":
        left = sum([jnp.sum(leaf**2) for leaf in leaves])
        right = sum([jnp.sum(leaf**2) for leaf in jax.tree.leaves(updates)])
        cosine = total / jnp.sqrt(left * right + 1e-3)
        return choose(cosine, 1.0 - cosine, jnp.arccos(0.99 * cosine))
    return choose(total, scale * total, terms, total / len(leaves))


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
    SCHEDULE, BEFORE = (
        choose("", "", "", "decay", "cosine", "warmup"),
        choose("", "", "clip", "decay"),
    )
    if SCHEDULE == "decay":
        rate = choose(RATE / (1.0 + 0.1 * step), RATE * jnp.exp(-0.1 * step))
    elif SCHEDULE == "cosine":
        rate = 0.5 * RATE * (1.0 + jnp.cos(jnp.pi * step / 20))
    elif SCHEDULE == "warmup":
        rate = RATE * jnp.minimum((step + 1) / 10, 1.0)
    else:
        rate = RATE
    if BEFORE == "clip":
        squares = [jnp.sum(g**2) for g in jax.tree.leaves(grads)]
        norm = jnp.sqrt(sum(squares) + 1e-3)
        factor = choose(LIMIT / jnp.maximum(norm, LIMIT), jnp.minimum(1.0, LIMIT / norm))
        slopes = jax.tree.map(lambda g: g * factor, grads)
    elif BEFORE == "decay":
        slopes = jax.tree.map(lambda g, p: g + choose(0.01, 0.1) * p, grads, params)
    else:
        slopes = grads
    if KIND == "sgd":
        return jax.tree.map(lambda p, g: p - rate * g, params, slopes)
    if KIND in ("adam", "adamw", "nadam"):
        mu = jax.tree.map(lambda m, g: DECAY * m + REST * g, momentum, slopes)
        nu = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, moments, slopes)
        if chance(0.4):
            mu_hat = jax.tree.map(lambda m: m / (1.0 - DECAY ** (step + 1).astype(m.dtype)), mu)
        else:
            mu_hat = mu
        steps = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + 1e-3), mu_hat, nu)
        if KIND == "adamw":
            steps = jax.tree.map(lambda s, p: s + choose(0.01, 0.1) * p, steps, params)
        elif KIND == "nadam":
            steps = jax.tree.map(lambda s, g: DECAY * s + REST * g, steps, slopes)
        state = (mu, nu)
    else:
        STATE, STEP = [TEXT.replace("DECAY", str(DECAY)) for TEXT in OPTIMIZERS[KIND]]
        STATE = STATE.replace("REST", str(REST))
        old = momentum if KIND in ("momentum", "nesterov", "signed", "averaged") else moments
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
        ("Particle", "step", "position", "velocity"),
        ("Belief", "update", "mean", "variance"),
        ("Forecast", "update", "level", "trend"),
        ("Ecosystem", "evolve", "prey", "predators"),
        ("Controller", "control", "error", "integral"),
        ("Average", "track", "mean", "weight"),
    )
    TUPLE, LOWER, N = chance(0.5), CLASS.lower(), between(2, 4)
    with module:
        if TUPLE:

            class CLASS(NamedTuple):
                """CLASS of FIELD and OTHER."""

                FIELD: jax.Array
                OTHER: jax.Array
        else:

            @jax.tree_util.register_dataclass
            @dataclass
            class CLASS:
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
        return choose((state.FIELD, path), (state.OTHER, path), (state, path))
    else:
        state = STEP(state, force)
    return choose(
        (state.FIELD, state.OTHER),
        state,
        state.FIELD,
        state.OTHER,
        state.FIELD - force,
        jnp.mean(state.FIELD),
        jnp.sum(jnp.square(state.FIELD)),
        state.FIELD * state.OTHER,
        jnp.stack([state.FIELD, state.OTHER]),
    )


@template("tree of types", "pytrees", 2)
def record_of_OTHER(
    record: {"features": F[S], "codes": OTHER[S, below(9)], "weights": (D[S], D[()])},
):
    """Combine F, OTHER and D leaves of a tree."""
    S, OTHER = shape(1, 2, 12), dtype("int32", "int8", "uint8", "bool", "int64", "uint16")
    D = floating()
    weights, scale = record["weights"]
    features: F[S] = record["features"]
    inner: F[S] = choose(mapped(features, 2), features, normalised(features))
    codes = record["codes"].astype(jnp.F)
    y: F[S] = choose(
        inner + 0.1 * codes, inner * (1.0 + codes), jnp.where(codes > 0.0, inner, -inner)
    )
    z: F[S] = choose(
        y * weights.astype(jnp.F) * scale.astype(jnp.F),
        (y - weights.astype(jnp.F)) * scale.astype(jnp.F),
        scale.astype(jnp.F) * y + jax.nn.softmax(weights.astype(jnp.F)),
    )
    return more(z, most=2)
