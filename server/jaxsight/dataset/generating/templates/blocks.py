"""Templates of neural-network blocks: attention, normalisation, recurrent cells, mixtures."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("attention", "blocks", 4)
def MASK_attention(
    query: F[B, N, INNER],
    keys: F[B, M, SHARED],
    values: F[B, M, SHARED],
    bias: F[N, M],
    visible: BOOL[N, M],
    projection: F[WIDTH * H, OUTER],
):
    """Compute MASK attention of H heads."""
    B, H, WIDTH, N = choose((), (2,)), choose(1, 2, 4), choose(2, 4, 8), size(2, 12)
    M, OUTER, GROUPED = choose(N, size(2, 12)), size(2, 12), chance(0.25)
    MASK = choose("full", "causal", "given", "local", "capped", "biased")
    INNER = (H, WIDTH) if H > 1 else (WIDTH,)
    SHARED = (1, WIDTH) if H > 1 and GROUPED else INNER
    BATCH, HEADS = "b" if B else "", "h" if H > 1 else ""
    SCORES = BATCH + "q" + HEADS + "d," + BATCH + "k" + HEADS + "d->" + BATCH + HEADS + "qk"
    CONTEXT = BATCH + HEADS + "qk," + BATCH + "k" + HEADS + "d->" + BATCH + "q" + HEADS + "d"
    q: F[B, N, INNER] = prepared(query)
    k: F[B, M, SHARED] = prepared(keys)
    v: F[B, M, SHARED] = prepared(values)
    if chance(0.25):
        q: F[B, N, INNER] = q * lax.rsqrt(jnp.mean(q**2, axis=-1, keepdims=True) + 1e-1)
    if H > 1 and GROUPED:
        k = jnp.repeat(k, H, axis=-2)
        v = jnp.repeat(v, H, axis=-2)
    scores = jnp.einsum("SCORES", q, k) * choose(round(WIDTH**-0.5, 4), 0.25)
    if MASK == "causal":
        causal = jnp.tril(jnp.ones((N, M), dtype=bool))
        scores = jnp.where(causal, scores, -1e4)
    elif MASK == "given":
        scores = jnp.where(visible, scores, -1e4)
    elif MASK == "local":
        near = jnp.abs(jnp.arange(N)[:, None] - jnp.arange(M)) < between(2, 4)
        scores = jnp.where(near, scores, -1e4)
    elif MASK == "capped":
        scores = choose(5.0, 10.0) * jnp.tanh(scores / 5.0)
    elif MASK == "biased":
        scores = scores + bias
    if chance(0.2):
        exponents = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
        weights = exponents / jnp.sum(exponents, axis=-1, keepdims=True)
    else:
        weights = choose(
            jax.nn.softmax(scores, axis=-1), jax.nn.softmax(scores, axis=-1), jax.nn.sigmoid(scores)
        )
    mixed_values = jnp.einsum("CONTEXT", weights, v)
    y: F[B, N, WIDTH] = mixed_values.reshape(*B, N, WIDTH * H)
    if chance(0.4):
        y: F[B, N, OUTER] = y @ projection / sqrt(WIDTH * H)
    return more(y, most=2)


@template("normalisation layer", "blocks", 3)
def KIND_norm(x: F[B, S, C], scale: F[C], bias: F[C]):
    """Apply KIND normalisation."""
    B, S, C, EPSILON = between(2, 4), shape(1, 2, 8), choose(4, 8, 12), choose(1e-2, 1e-1)
    KIND, GROUPS = choose("layer", "rms", "batch", "group", "instance", "weight"), choose(2, 4)
    AXES = {
        "batch": tuple(range(len(S) + 1)),
        "instance": tuple(range(1, len(S) + 1)),
        "weight": 0,
    }.get(KIND, -1)
    inputs: F[B, S, C] = prepared(x)
    if KIND == "group":
        y = inputs.reshape(B, *S, GROUPS, C // GROUPS)
    else:
        y = choose(inputs, 0.5 * inputs)
    if KIND == "rms":
        power = jnp.mean(y**2, axis=AXES, keepdims=True)
        z = choose(y * lax.rsqrt(power + EPSILON), y / jnp.sqrt(power + EPSILON))
    else:
        mean = jnp.mean(y, axis=AXES, keepdims=True)
        variance = choose(
            jnp.var(y, axis=AXES, keepdims=True),
            jnp.mean((y - mean) ** 2, axis=AXES, keepdims=True),
        )
        z = choose(
            (y - mean) * lax.rsqrt(variance + EPSILON), (y - mean) / jnp.sqrt(variance + EPSILON)
        )
    if KIND == "group":
        z = z.reshape(B, *S, C)
    result: F[B, S, C] = choose(z * scale + bias, z * scale, jnp.tanh(z), jnp.tanh(z) + bias)
    return more(result, x, most=3)


@template("dense layers", "blocks", 3)
def KIND_layers(x: F[B, N], w1: F[N, N], w2: F[N, M], bias: F[M], w3: F[M, M]):
    """Apply dense layers (KIND)."""
    B, N, M = shape(1, 2, 6), size(2, 16), size(2, 16)
    KIND = choose("residual", "gated", "plain", "deep")
    inputs: F[B, N] = prepared(x)
    hidden: F[B, N] = inputs @ w1 / sqrt(N)
    activated: F[B, N] = mapped(hidden, 2)
    if KIND == "residual":
        y: F[B, N] = inputs + activated
    elif KIND == "gated":
        y: F[B, N] = inputs * jax.nn.sigmoid(activated)
    else:
        outer: F[B, M] = choose(activated, inputs) @ w2 / sqrt(N) + bias
        y: F[B, M] = mapped(outer, 2)
        if KIND == "deep":
            y: F[B, M] = y + jnp.tanh(y @ w3 / sqrt(M))
    return more(y, most=2)


@template("recurrent cell", "blocks", 3)
def KIND_network(
    xs: F[N, B, K], wx: F[K, GATES * M], wh: F[M, GATES * M], initial: F[B, M], bias: F[GATES * M]
):
    """Run a recurrent network of KIND cells."""
    N, K, M, B = size(2, 12), size(2, 8), size(2, 8), choose((), (3,), ())
    KIND = choose("elman", "gru", "lstm", "minimal", "leaky")
    GATES = {"gru": 3, "lstm": 4, "minimal": 2}.get(KIND, 1)
    ACTIVATION = choose("jnp.tanh", "jnp.sin", "jax.nn.sigmoid", "jax.nn.soft_sign")

    def cell(carry, x):
        if KIND == "lstm":
            h, c = carry
        else:
            h = carry
        inputs = choose(x @ wx / sqrt(K), x @ wx / sqrt(K) + bias)
        recurrent = h @ wh / sqrt(M)
        if KIND == "gru":
            reset_x, update_x, new_x = jnp.split(inputs, 3, axis=-1)
            reset_h, update_h, new_h = jnp.split(recurrent, 3, axis=-1)
            update = jax.nn.sigmoid(update_x + update_h)
            candidate = ACTIVATION(new_x + jax.nn.sigmoid(reset_x + reset_h) * new_h)
            new: F[B, M] = (1.0 - update) * candidate + update * h
        elif KIND == "lstm":
            i, f, g, o = jnp.split(inputs + recurrent, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * ACTIVATION(g)
            new: F[B, M] = jax.nn.sigmoid(o) * jnp.tanh(c)
        elif KIND == "minimal":
            forget, candidate = jnp.split(inputs + recurrent, 2, axis=-1)
            kept = jax.nn.sigmoid(forget)
            new: F[B, M] = kept * h + (1.0 - kept) * ACTIVATION(candidate)
        elif KIND == "leaky":
            new: F[B, M] = 0.9 * h + 0.1 * jnp.tanh(inputs + recurrent)
        else:
            new: F[B, M] = ACTIVATION(inputs + recurrent)
        output = choose(mapped(new, 2), new * h)
        if KIND == "lstm":
            return (new, c), output
        return new, output

    if KIND == "lstm":
        (final, _), outputs = lax.scan(cell, (initial, jnp.zeros_like(initial)), xs)
    elif chance(0.3):
        final, outputs = lax.scan(cell, initial, xs, reverse=True)
    else:
        final, outputs = lax.scan(cell, initial, xs)
    if chance(0.3):
        return final, outputs
    if chance(0.5):
        summary: F[B, M] = jnp.mean(outputs, axis=0) + final
        return more(summary, most=3)
    states: F[N, B, M] = outputs + final
    return more(states, most=3)


@template("mixture of experts", "blocks", 4)
def KIND_mixture(
    x: W[N, K], router: W[K, E], experts: W[E, K, M], counts: I32[E, below(max(2, N // E))]
):
    """Apply a mixture of experts with KIND routing."""
    N, K, E, M = size(2, 8), size(2, 8), between(2, 4), size(2, 8)
    KIND = choose("soft", "ragged", "ragged", "best", "capacity")
    tokens: W[N, K] = prepared(x)
    if KIND == "ragged":
        sizes = counts.at[-1].set(N - jnp.sum(counts[:-1], dtype=jnp.int32))
        routed = lax.ragged_dot(tokens, experts, sizes) / sqrt(K)
        scores = jax.nn.sigmoid(tokens @ router)
        y: W[N, M] = routed * jnp.mean(scores, axis=-1, keepdims=True)
        return more(y, most=3)
    logits = tokens @ router / sqrt(K)
    if KIND == "best":
        best = lax.top_k(logits, 2)[0]
        weights = jax.nn.softmax(jnp.where(logits >= best[:, -1:], logits, -1e4), axis=-1)
    elif KIND == "capacity":
        weights = jax.nn.softmax(logits, axis=0)
    else:
        weights = jax.nn.softmax(logits, axis=-1)
    outputs: W[N, E, M] = jnp.einsum("ti,eio->teo", tokens, experts) / sqrt(K)
    activated = choose(outputs, mapped(outputs, 2))
    y: W[N, M] = jnp.einsum("teo,te->to", activated, weights)
    return more(y, most=3)


@template("embedding and positions", "blocks", 2)
def KIND_embedding(
    tokens: INDEX[B, N, below(COUNT)], table: W[COUNT, M], positions: W[N, M], decay: W[()]
):
    """Embed tokens with KIND positions."""
    B, N, M, COUNT = choose((), (2,)), size(2, 12), choose(4, 6, 8), size(4, 24)
    KIND, HALF = choose("learned", "sinusoid", "rotary", "relative"), M // 2
    hidden = table[tokens]
    steps = jnp.arange(N, dtype=jnp.W)[:, None]
    rates = 1.0 / 100.0 ** (jnp.arange(HALF, dtype=jnp.W) / HALF)
    angles = steps * rates
    if KIND == "learned":
        y: W[B, N, M] = hidden + positions
    elif KIND == "relative":
        y: W[B, N, M] = hidden * jnp.exp(-0.1 * jnp.abs(decay) * steps)
    elif KIND == "sinusoid":
        waves = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)
        y: W[B, N, M] = hidden + waves
    else:
        even = hidden[..., :HALF]
        odd = hidden[..., HALF:]
        first = even * jnp.cos(angles) - odd * jnp.sin(angles)
        second = even * jnp.sin(angles) + odd * jnp.cos(angles)
        y: W[B, N, M] = jnp.concatenate([first, second], axis=-1)
    return more(y)
