"""Templates of neural-network blocks: attention, normalisation, recurrent cells, mixtures."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("attention", "blocks", 4)
def MASK_attention(
    q: F[B, N, INNER],
    k: F[B, M, SHARED],
    v: F[B, M, SHARED],
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
    if chance(0.3):
        q = choose(
            q * lax.rsqrt(jnp.mean(q**2, axis=-1, keepdims=True) + 1e-3),
            q / (jnp.linalg.norm(q, axis=-1, keepdims=True) + 1e-3),
            jax.nn.elu(q) + 1.0,
            jax.nn.standardize(q, axis=-1, epsilon=1e-3),
        )
    if H > 1 and GROUPED:
        k = jnp.repeat(k, H, axis=-2)
        v = jnp.repeat(v, H, axis=-2)
    scores = jnp.einsum("SCORES", q, k) / sqrt(WIDTH)
    if MASK == "causal":
        causal = jnp.tril(jnp.ones((N, M), dtype=bool))
        scores = jnp.where(causal, scores, -1e4)
    elif MASK == "given":
        scores = jnp.where(visible, scores, -1e4)
    elif MASK == "local":
        near = jnp.abs(jnp.arange(N)[:, None] - jnp.arange(M)) < between(2, 4)
        scores = jnp.where(near, scores, -1e4)
    elif MASK == "capped":
        CAP = choose(5.0, 10.0, 30.0)
        scores = CAP * jnp.tanh(scores / CAP)
    elif MASK == "biased":
        scores = scores + bias
    if chance(0.2):
        exponents = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
        weights = exponents / jnp.sum(exponents, axis=-1, keepdims=True)
    else:
        weights = choose(
            jax.nn.softmax(scores, axis=-1), jax.nn.softmax(scores, axis=-1), jax.nn.sigmoid(scores)
        )
    context = jnp.einsum("CONTEXT", weights, v)
    y: F[B, N, WIDTH] = context.reshape(*B, N, WIDTH * H)
    if chance(0.4):
        y: F[B, N, OUTER] = y @ projection / sqrt(WIDTH * H)
    return more(y, most=2, style="layer")


@template("normalisation layer", "blocks", 3)
def KIND_norm(x: F[B, S, C], scale: F[C], bias: F[C]):
    """Apply KIND normalisation."""
    B, S, C, EPSILON = between(2, 4), shape(1, 2, 8), choose(4, 8, 12), choose(1e-3, 1e-5)
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
        y = inputs
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
    result: F[B, S, C] = choose(z * scale + bias, z * scale, z * (1.0 + scale) + bias, z, z + bias)
    return more(result, x, most=1, style="layer")


@template("dense layers", "blocks", 3)
def KIND_layers(
    x: F[B, N],
    w1: F[N, H],
    w2: F[H, M],
    w3: F[N, H],
    b1: F[H],
    b2: F[M],
    scale: F[N],
    skip: F[N, M],
):
    """Apply TITLE."""
    B, N, H, M = shape(1, 2, 6), size(2, 16), size(2, 16), size(2, 16)
    KIND, TITLE = choose(
        *(("mlp", "a multilayer perceptron"), ("gated", "a gated feed-forward block")),
        *(("residual", "a residual block"), ("highway", "a highway layer")),
        *(("prenorm", "a feed-forward block to normalised inputs"),),
        *(("factorised", "a layer of low rank"), ("bottleneck", "a bottleneck with a shortcut")),
    )
    M = N if KIND in ("residual", "highway", "prenorm") else M
    inputs = x
    if KIND == "prenorm":
        inputs = choose(
            jax.nn.standardize(x, axis=-1, epsilon=1e-3),
            x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-3) * scale,
        )
    hidden: F[B, H] = choose(
        inputs @ w1 / sqrt(N),
        inputs @ w1 / sqrt(N) + b1,
        jnp.dot(inputs, w1) + b1,
        jnp.einsum("...i,ij->...j", inputs, w1) + b1,
    )
    units: F[B, H] = hidden if KIND == "factorised" else activated(hidden)
    if KIND == "gated":
        units = units * choose(inputs @ w3 / sqrt(N), jax.nn.sigmoid(inputs @ w3))
    outputs: F[B, M] = choose(units @ w2 / sqrt(H), units @ w2 / sqrt(H) + b2, units @ w2 + b2)
    if KIND in ("residual", "prenorm"):
        y: F[B, M] = choose(x + outputs, x + 0.5 * outputs, x + scale * outputs)
    elif KIND == "bottleneck":
        y: F[B, M] = outputs + x @ skip / sqrt(N)
    elif KIND == "highway":
        gate = jax.nn.sigmoid(choose(outputs, outputs - 1.0))
        candidate: F[B, M] = activated(outputs)
        y: F[B, M] = gate * candidate + (1.0 - gate) * x
    else:
        y: F[B, M] = outputs
    return more(y, most=2, style="layer")


@template("recurrent cell", "blocks", 3)
def KIND_network(
    xs: F[N, B, K], wx: F[K, GATES * M], wh: F[M, GATES * M], initial: F[B, M], bias: F[GATES * M]
):
    """Run a recurrent network of KIND cells."""
    N, K, M, B = size(2, 12), size(2, 8), size(2, 8), choose((), (3,), ())
    KIND = choose("elman", "gru", "lstm", "minimal", "leaky")
    GATES = {"gru": 3, "lstm": 4, "minimal": 2}.get(KIND, 1)
    ACTIVATION = choose("jnp.tanh", "jnp.tanh", "jax.nn.relu", "jax.nn.soft_sign", "jax.nn.silu")

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
            LEAK = choose(0.1, 0.2, 0.3)
            new: F[B, M] = (1.0 - LEAK) * h + LEAK * jnp.tanh(inputs + recurrent)
        else:
            new: F[B, M] = ACTIVATION(inputs + recurrent)
        output = choose(new, new, activated(new), jnp.mean(new, axis=-1))
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
    if chance(0.3):
        return final
    summary: F[B] = choose(
        jnp.mean(outputs, axis=0), outputs[-1], jnp.max(outputs, axis=0), jnp.sum(outputs, axis=0)
    )
    if chance(0.3):
        return summary, final
    return summary


@template("mixture of experts", "blocks", 4)
def KIND_mixture(
    x: W[N, K], router: W[K, E], experts: W[E, K, M], counts: I32[E, below(max(2, N // E))]
):
    """Apply a mixture of experts with KIND routing."""
    N, K, E, M = size(2, 8), size(2, 8), between(2, 4), size(2, 8)
    KIND = choose("soft", "ragged", "ragged", "best", "capacity")
    tokens: W[N, K] = choose(
        x, x, x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-3), jax.nn.standardize(x)
    )
    if KIND == "ragged":
        sizes = counts.at[-1].set(N - jnp.sum(counts[:-1], dtype=jnp.int32))
        routed: W[N, M] = lax.ragged_dot(tokens, experts, sizes) / sqrt(K)
        units: W[N, M] = choose(activated(routed), routed)
        gates = choose(jax.nn.softmax(tokens @ router, axis=-1), jax.nn.sigmoid(tokens @ router))
        y: W[N, M] = units * jnp.max(gates, axis=-1, keepdims=True)
        return more(y, most=2, style="layer")
    logits = tokens @ router / sqrt(K)
    if KIND == "best":
        best = lax.top_k(logits, 2)[0]
        weights = jax.nn.softmax(jnp.where(logits >= best[:, -1:], logits, -1e4), axis=-1)
    elif KIND == "capacity":
        weights = jax.nn.softmax(logits, axis=0)
    else:
        weights = jax.nn.softmax(logits, axis=-1)
    outputs: W[N, E, M] = jnp.einsum("ti,eio->teo", tokens, experts) / sqrt(K)
    units = choose(outputs, activated(outputs))
    y: W[N, M] = jnp.einsum("teo,te->to", units, weights)
    return more(y, most=2, style="layer")


@template("embedding and positions", "blocks", 2)
def KIND_embedding(
    tokens: INDEX[B, N, below(COUNT)], table: W[COUNT, M], positions: W[N, M], decay: W[()]
):
    """Embed tokens with KIND positions."""
    B, N, M, COUNT = choose((), (2,)), size(2, 12), choose(4, 6, 8), size(4, 24)
    KIND, HALF = choose("learned", "sinusoid", "rotary", "relative"), M // 2
    hidden = table[tokens]
    steps = jnp.arange(N, dtype=jnp.W)[:, None]
    rates = 1.0 / choose(100.0, 10000.0) ** (jnp.arange(HALF, dtype=jnp.W) / HALF)
    angles = steps * rates
    if KIND == "learned":
        y: W[B, N, M] = hidden + positions
    elif KIND == "relative":
        y: W[B, N, M] = choose(
            hidden * jnp.exp(-0.1 * jnp.abs(decay) * steps),
            hidden + decay * positions,
            sqrt(M) * hidden + positions,
            hidden - decay * steps,
        )
    elif KIND == "sinusoid":
        waves = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)
        y: W[B, N, M] = hidden + waves
    else:
        even = hidden[..., :HALF]
        odd = hidden[..., HALF:]
        first = even * jnp.cos(angles) - odd * jnp.sin(angles)
        second = even * jnp.sin(angles) + odd * jnp.cos(angles)
        y: W[B, N, M] = jnp.concatenate([first, second], axis=-1)
    return more(y, most=2, style="layer")
