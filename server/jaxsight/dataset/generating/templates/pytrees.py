"""Templates of parameters in containers, and of optimizers."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


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
    y: F[B, SIZES[0]] = choose(x, 0.5 * x)
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
        y: F[B, SIZES[1]] = mapped(hidden_K, 2)
    return more(y, most=3)


@template("tree map", "pytrees", 3)
def tree_NAME_KIND(params: TREE, updates: TREE):
    """Map a function over the leaves of trees."""
    LEAVES = choose("w b", "scale shift gain", "q k v", "mean std", "left right center").split()
    NAME, KIND = choose("update", "map", "blend"), choose("tree", "sums", "norm", "items", "flat")
    TREE, FIRST = dict([(LEAF, array(F, shape(0, 2, 12))) for LEAF in LEAVES]), LEAVES[0]

    def combine(a: F[()], b: F[()]):
        return choose(smooth(a, b), smooth(a), a - 0.1 * jnp.tanh(b) * a)

    if chance(0.5):
        result = jax.tree.map(combine, params, updates)
    else:
        result = jax.tree.map(lambda a: combine(a, 0.5 * a), params)
    if KIND == "tree":
        return result
    if KIND == "sums":
        leaves = [jnp.sum(jnp.tanh(leaf)) for leaf in jax.tree.leaves(result)]
        y: F[()] = choose(sum(leaves), jnp.tanh(0.1 * sum(leaves)))
    elif KIND == "norm":
        squares = jax.tree.map(lambda leaf: jnp.mean(leaf**2), result)
        y: F[()] = jnp.sqrt(sum(jax.tree.leaves(squares)) + 1e-2)
    elif KIND == "items":
        y: F[()] = jnp.mean(result["FIRST"])
        for LEAF in LEAVES[1:]:
            y: F[()] = y + jnp.mean(jnp.sin(result["LEAF"]))
    else:
        leaves, _ = jax.tree.flatten(result)
        y: F[2] = jnp.concatenate([leaf.ravel() for leaf in leaves]) / 8.0
    return more(y, most=3)


@template("optimizer", "pytrees", 4)
def KIND_step(params: TREE, grads: TREE, moments: TREE):
    """Update parameters with KIND."""
    D = dtype("float32", "float32", "float64", "bfloat16")
    LEAVES = choose("w b", "kernel bias scale", "q k v")
    TREE = dict([(LEAF, array(D, shape(0, 2, 12))) for LEAF in LEAVES.split()])
    KIND = choose("sgd", "momentum", "nesterov", "adam", "rmsprop", "adagrad", "lion", "clipped")
    RATE, DECAY, LIMIT = choose(0.1, 0.01, 0.05, 0.3), choose(0.9, 0.95, 0.8), choose(0.5, 1.0, 2.0)
    REST, DECAYED = round(1 - DECAY, 2), chance(0.3)
    STATE, STEP = {
        "momentum": ("DECAY * m + g", "m"),
        "nesterov": ("DECAY * m + g", "g + DECAY * m"),
        "adam": ("DECAY * jnp.abs(m) + REST * g ** 2", "g / (jnp.sqrt(m) + 0.1)"),
        "rmsprop": ("DECAY * m ** 2 + REST * g ** 2", "g * lax.rsqrt(m + 0.1)"),
        "adagrad": ("m ** 2 + g ** 2", "g / jnp.sqrt(m + 0.1)"),
        "lion": ("DECAY * m + REST * g", "jnp.tanh(4.0 * m)"),
    }.get(KIND, ("", ""))
    STATE = STATE.replace("DECAY", str(DECAY)).replace("REST", str(REST))
    STEP = STEP.replace("DECAY", str(DECAY))
    if KIND == "clipped" or chance(0.3):
        squares = [jnp.sum(g**2) for g in jax.tree.leaves(grads)]
        norm = jnp.sqrt(sum(squares) + 1e-2)
        factor = LIMIT / jnp.maximum(norm, LIMIT)
        slopes = jax.tree.map(lambda g: g * factor, grads)
    elif DECAYED:
        slopes = jax.tree.map(lambda g, p: g + choose(0.01, 0.1) * p, grads, params)
    else:
        slopes = jax.tree.map(lambda g: choose(jnp.tanh(g), 0.5 * g), grads)
    if not STATE:
        return jax.tree.map(lambda p, g: p - RATE * g, params, slopes)
    new_moments = jax.tree.map(lambda m, g: STATE, moments, slopes)
    steps = jax.tree.map(lambda m, g: STEP, new_moments, slopes)
    new_params = jax.tree.map(lambda p, s: p - RATE * s, params, steps)
    return new_params, new_moments


@template("named tuple", "pytrees", 3)
def STEP_LOWER_LOOP(first: F[S], second: F[S], force: F[S]):
    """Advance a LOWER of FIELD and OTHER."""
    S, LOOP, RATE = shape(0, 2, 12), choose("fori", "loop", "scan", "once"), choose(0.1, 0.2, 0.05)
    CLASS, STEP = choose("State", "Belief", "Particle"), choose("advance", "predict", "relax")
    TUPLE = chance(0.5)
    FIELD, OTHER = choose(
        ("position", "velocity"), ("mean", "spread"), ("level", "trend"), ("value", "slope")
    )
    LOWER, N = CLASS.lower(), between(2, 4)
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

        def STEP(state, drive):
            one: F[S] = jnp.tanh(state.FIELD)
            other: F[S] = 0.5 * state.OTHER
            change: F[S] = smooth(one, other)
            drift: F[S] = choose(smooth(other), smooth(one))
            new_FIELD = state.FIELD + RATE * jnp.tanh(change) + RATE * state.OTHER
            new_OTHER = 0.9 * state.OTHER + RATE * jnp.tanh(drift) + 0.1 * drive
            return CLASS(new_FIELD, new_OTHER)

    state = CLASS(first, second)
    if LOOP == "fori":
        state = lax.fori_loop(0, N, lambda _, now: STEP(now, force), state)
    elif LOOP == "loop":
        for _ in range(N):
            state = STEP(state, force)
    elif LOOP == "scan":
        state, path = lax.scan(lambda now, _: (STEP(now, force), now.FIELD), state, None, length=N)
        return state.OTHER, path
    else:
        state = STEP(state, force)
    if chance(0.3):
        return state.FIELD, state.OTHER
    y: F[S] = choose(
        state.FIELD - 0.5 * state.OTHER, state.FIELD * jnp.tanh(state.OTHER) + state.OTHER
    )
    return more(y, first, most=3)


@template("tree of types", "pytrees", 2)
def record_of_OTHER(
    record: {"features": F[S], "codes": OTHER[S, below(9)], "weights": (D[S], D[()])},
):
    """Combine F, OTHER and D leaves of a tree."""
    S, OTHER = shape(1, 2, 12), dtype("int32", "int8", "uint8", "bool", "int64", "uint16")
    D = floating()
    weights, scale = record["weights"]
    features: F[S] = record["features"]
    inner: F[S] = mapped(features, 2)
    codes = record["codes"].astype(jnp.F)
    y: F[S] = choose(inner + 0.5 * codes, inner * jnp.tanh(codes) + 0.1 * codes)
    z: F[S] = y * weights.astype(jnp.F) + scale.astype(jnp.F) + 0.1 * inner
    return more(z)
