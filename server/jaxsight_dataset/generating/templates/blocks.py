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
    MASK = choose("full", "causal", "given", "biased")
    INNER = (H, WIDTH) if H > 1 else (WIDTH,)
    SHARED = (1, WIDTH) if H > 1 and GROUPED else INNER
    BATCH, HEADS = "b" if B else "", "h" if H > 1 else ""
    SCORES = BATCH + "q" + HEADS + "d," + BATCH + "k" + HEADS + "d->" + BATCH + HEADS + "qk"
    CONTEXT = BATCH + HEADS + "qk," + BATCH + "k" + HEADS + "d->" + BATCH + "q" + HEADS + "d"
    if chance(0.3):
        q = q * lax.rsqrt(jnp.mean(q**2, axis=-1, keepdims=True) + 1e-3)
    if H > 1 and GROUPED:
        k = jnp.repeat(k, H, axis=-2)
        v = jnp.repeat(v, H, axis=-2)
    scores = jnp.einsum("SCORES", q, k) / sqrt(WIDTH)
    if MASK == "causal":
        causal = jnp.tril(jnp.ones((N, M), dtype=bool))
        scores = jnp.where(causal, scores, -1e4)
    elif MASK == "given":
        scores = jnp.where(visible, scores, -1e4)
    elif MASK == "biased":
        scores = scores + bias
    weights = choose(jax.nn.softmax, jax.nn.softmax, jax.nn.sigmoid)(scores)
    context = jnp.einsum("CONTEXT", weights, v)
    y: F[B, N, WIDTH] = context.reshape(*B, N, WIDTH * H)
    if chance(0.4):
        y: F[B, N, OUTER] = y @ projection / sqrt(WIDTH * H)
    return more(y, most=2, style="layer")


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
        ("mlp", "a multilayer perceptron"),
        ("gated", "a gated feed-forward block"),
        ("residual", "a residual block"),
        ("prenorm", "a feed-forward block to normalised inputs"),
        ("bottleneck", "a bottleneck with a shortcut"),
    )
    M = N if KIND in ("residual", "prenorm") else M
    inputs = x
    if KIND == "prenorm":
        inputs = x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-3) * scale
    hidden: F[B, H] = choose(inputs @ w1 / sqrt(N), jnp.dot(inputs, w1) + b1)
    units: F[B, H] = activated(hidden)
    if KIND == "gated":
        units = units * (inputs @ w3)
    outputs: F[B, M] = choose(units @ w2 / sqrt(H) + b2, units @ w2 + b2)
    if KIND in ("residual", "prenorm"):
        y: F[B, M] = choose(x + outputs, x + 0.5 * outputs, x + scale * outputs)
    elif KIND == "bottleneck":
        y: F[B, M] = outputs + x @ skip / sqrt(N)
    else:
        y: F[B, M] = outputs
    return more(y, most=2, style="layer")


@template("recurrent cell", "blocks", 3)
def KIND_network(
    xs: F[N, B, K], wx: F[K, GATES * M], wh: F[M, GATES * M], initial: F[B, M], bias: F[GATES * M]
):
    """Run a recurrent network of KIND cells."""
    N, K, M, B = size(2, 12), size(2, 8), size(2, 8), choose((), (3,), ())
    KIND = choose("elman", "gru", "lstm")
    GATES = {"gru": 3, "lstm": 4}.get(KIND, 1)
    ACTIVATION = choose("jnp.tanh", "jax.nn.relu", "jax.nn.soft_sign", "jax.nn.silu")

    def cell(carry, x):
        if KIND == "lstm":
            h, c = carry
        else:
            h = carry
        inputs = x @ wx / sqrt(K) + bias
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
    return choose(final, jnp.mean(outputs, axis=0), outputs[-1], jnp.max(outputs, axis=0))


@template("mixture of experts", "blocks", 4)
def KIND_mixture(
    x: W[N, K], router: W[K, E], experts: W[E, K, M], counts: I32[E, below(max(2, N // E))]
):
    """Apply a mixture of experts with KIND routing."""
    N, K, E, M = size(2, 8), size(2, 8), between(2, 4), size(2, 8)
    KIND = choose("soft", "ragged", "best")
    tokens: W[N, K] = choose(x, x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-3))
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
    else:
        weights = jax.nn.softmax(logits, axis=-1)
    outputs: W[N, E, M] = jnp.einsum("ti,eio->teo", tokens, experts) / sqrt(K)
    units = choose(outputs, activated(outputs))
    y: W[N, M] = jnp.einsum("teo,te->to", units, weights)
    return more(y, most=2, style="layer")
