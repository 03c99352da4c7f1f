"""Templates of Pallas kernels.

Their blocks suit GPUs, whose sizes are powers of two, and TPUs, where a block has all columns. They
are interpreted on CPUs only.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("elementwise kernel", "pallas", 3)
def fused_NAME(x: D[N, C], y: D[N, C], bias: D[1, C]):
    """Compute NAME in one kernel, a block of rows at a time."""
    D, C, ROWS = dtype("float32", "float32", "bfloat16"), choose(16, 32, 64, 128), choose(8, 16, 32)
    BLOCKS = choose(2, 4, 8)
    N = ROWS * BLOCKS
    NAME = choose("activation", "residual", "gate", "interpolation", "blend", "bias_and_gate")
    WITH_BIAS = chance(0.5)
    with module:
        if WITH_BIAS:

            def NAME_kernel(x_ref, y_ref, bias_ref, out_ref):
                """Combine a block of rows with the bias."""
                values: D[ROWS, C] = x_ref[...]
                others: D[ROWS, C] = y_ref[...]
                inputs: D[ROWS, C] = values + bias_ref[...]
                inner: D[ROWS, C] = activated(inputs, "kernel")
                out_ref[...] = choose(
                    inner * others,
                    inner + others,
                    inner * jax.nn.sigmoid(others),
                    values + inner * others,
                    others + 0.5 * (inner - others),
                    jnp.maximum(inner, others),
                    inner * jax.nn.silu(others),
                )
        else:

            def NAME_kernel(x_ref, y_ref, out_ref):
                """Combine a block of rows of two arrays."""
                values: D[ROWS, C] = x_ref[...]
                others: D[ROWS, C] = y_ref[...]
                inner: D[ROWS, C] = activated(values, "kernel")
                out_ref[...] = choose(
                    inner * others,
                    inner + others,
                    jnp.where(others > 0.0, inner, 0.1 * values),
                    inner * jax.nn.sigmoid(others),
                    others + 0.1 * (inner - others),
                    values * others + inner,
                    inner * jnp.exp(-jnp.abs(others)),
                    jnp.square(inner - others),
                    inner * jnp.tanh(others),
                )

    rows = pl.BlockSpec((ROWS, C), lambda i: (i, 0))
    call = pl.pallas_call(
        NAME_kernel,
        grid=(BLOCKS,),
        in_specs=[rows, rows, pl.BlockSpec((1, C), lambda i: (0, 0))]
        if WITH_BIAS
        else [rows, rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=jax.default_backend() == "cpu",
    )
    result: D[N, C] = call(x, y, bias) if WITH_BIAS else call(x, y)
    return more(result, most=2)


@template("tiled matmul kernel", "pallas", 3)
def tiled_NAME(x: F32[M * TILES, K * STEPS], y: F32[K * STEPS, N * COLUMNS]):
    """Multiply matrices tile by tile, and apply NAME to the product."""
    M, N, K = choose(16, 32), choose(16, 32), choose(16, 32)
    TILES, COLUMNS, STEPS = between(1, 3), between(1, 2), choose(1, 2, 4)
    NAME = choose("product", "projection", "dense_layer", "scores")
    with module:
        if STEPS == 1:

            def NAME_kernel(x_ref, y_ref, out_ref):
                """Compute a tile of the product."""
                product: F32[M, N] = choose(
                    jnp.dot(x_ref[...], y_ref[...]),
                    jnp.dot(x_ref[...], y_ref[...]) / choose(4.0, 8.0),
                    x_ref[...] @ y_ref[...],
                )
                out_ref[...] = choose(
                    activated(product, "kernel"),
                    product,
                    product - jnp.mean(product, axis=-1, keepdims=True),
                )
        else:

            def NAME_kernel(x_ref, y_ref, out_ref):
                """Accumulate a tile of the product over blocks of the inner dimension."""

                def add_block(k, total):
                    block = pl.ds(k * K, K)
                    return total + jnp.dot(x_ref[:, block], y_ref[block, :])

                zeros = jnp.zeros(out_ref.shape, jnp.float32)
                product: F32[M, N] = lax.fori_loop(0, STEPS, add_block, zeros)
                scaled: F32[M, N] = choose(product / choose(4.0, 8.0), product)
                out_ref[...] = choose(
                    activated(scaled, "kernel"),
                    scaled,
                    scaled - jnp.max(scaled, axis=-1, keepdims=True),
                )

    call = pl.pallas_call(
        NAME_kernel,
        grid=(TILES, COLUMNS),
        in_specs=[
            pl.BlockSpec((M, K * STEPS), lambda i, j: (i, 0)),
            pl.BlockSpec((K * STEPS, N), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((M, N), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M * TILES, N * COLUMNS), x.dtype),
        interpret=jax.default_backend() == "cpu",
    )
    product: F32[M * TILES, N * COLUMNS] = call(x, y)
    return more(product, style="layer")


@template("row kernel", "pallas", 3)
def KIND_rows(x: D[N, C], scale: D[1, C]):
    """Apply KIND to the rows of a block, in a kernel."""
    D, C, ROWS = dtype("float32", "float32", "bfloat16"), choose(16, 32, 64, 128), choose(8, 16, 32)
    BLOCKS, EPSILON, SCALED = choose(1, 2, 4, 8), choose(1e-5, 1e-3), chance(0.5)
    N = ROWS * BLOCKS
    KIND = choose("softmax", "layer_norm", "rms_norm", "log_softmax", "l2_norm")
    with module:

        def KIND(rows: D[ROWS, C]):
            """Return the rows, each of them normalised."""
            if KIND in ("softmax", "log_softmax"):
                shifted = rows - jnp.max(rows, axis=-1, keepdims=True)
                if KIND == "log_softmax":
                    total = jnp.sum(jnp.exp(shifted), axis=-1, keepdims=True)
                    return shifted - jnp.log(total)
                weights = jnp.exp(shifted)
                return weights / jnp.sum(weights, axis=-1, keepdims=True)
            if KIND == "layer_norm":
                centered = rows - jnp.mean(rows, axis=-1, keepdims=True)
                variance = jnp.mean(centered**2, axis=-1, keepdims=True)
                return centered * lax.rsqrt(variance + EPSILON)
            if KIND == "rms_norm":
                return rows * lax.rsqrt(jnp.mean(rows**2, axis=-1, keepdims=True) + EPSILON)
            return rows / jnp.sqrt(jnp.sum(rows**2, axis=-1, keepdims=True) + EPSILON)

        if SCALED:

            def KIND_kernel(x_ref, scale_ref, out_ref):
                """Normalise the rows of a block, and scale its columns."""
                normal = KIND(x_ref[...])
                out_ref[...] = normal * choose(scale_ref[...], 1.0 + scale_ref[...])
        else:

            def KIND_kernel(x_ref, out_ref):
                """Normalise the rows of a block."""
                inputs: D[ROWS, C] = x_ref[...]
                rows: D[ROWS, C] = choose(
                    inputs, inputs, activated(inputs, "kernel"), inputs / choose(0.5, 2.0)
                )
                out_ref[...] = KIND(rows)

    rows = pl.BlockSpec((ROWS, C), lambda i: (i, 0))
    call = pl.pallas_call(
        KIND_kernel,
        grid=(BLOCKS,),
        in_specs=[rows, pl.BlockSpec((1, C), lambda i: (0, 0))] if SCALED else [rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=jax.default_backend() == "cpu",
    )
    normal: D[N, C] = call(x, scale) if SCALED else call(x)
    y: D[N, C] = choose(normal, normal, x + normal, normal * x)
    return more(y, most=2, style="layer")


@template("optimizer kernel", "pallas", 2)
def KIND_update(params: F32[N, C], grads: F32[N, C], moments: F32[N, C, "positive"]):
    """Update parameters and moments with KIND, a block of rows at a time."""
    C, ROWS, BLOCKS = choose(16, 32, 64, 128), choose(8, 16), choose(1, 2, 4)
    N, RATE, DECAY = ROWS * BLOCKS, choose(0.1, 0.01, 0.05), choose(0.9, 0.95, 0.8)
    KIND = choose("signed", "rmsprop", "nesterov", "adagrad", "weight_decay")
    with module:

        def KIND_kernel(params_ref, grads_ref, moments_ref, new_params_ref, new_moments_ref):
            """Update a block of rows."""
            grads = grads_ref[...]
            if KIND == "signed":
                moments = DECAY * moments_ref[...] + (1.0 - DECAY) * grads
                step = choose(moments / (jnp.abs(moments) + 1e-2), jnp.clip(moments, -1.0, 1.0))
            elif KIND == "rmsprop":
                moments = DECAY * moments_ref[...] + (1.0 - DECAY) * grads**2
                step = grads * lax.rsqrt(moments + 1e-2)
            elif KIND == "nesterov":
                moments = DECAY * moments_ref[...] + grads
                step = grads + DECAY * moments
            elif KIND == "adagrad":
                moments = moments_ref[...] + grads**2
                step = grads / jnp.sqrt(moments + 1e-2)
            else:
                moments = DECAY * moments_ref[...] + grads
                step = moments + choose(0.1, 0.01) * params_ref[...]
            new_params_ref[...] = params_ref[...] - RATE * step
            new_moments_ref[...] = moments

    rows = pl.BlockSpec((ROWS, C), lambda i: (i, 0))
    like = jax.ShapeDtypeStruct(params.shape, params.dtype)
    call = pl.pallas_call(
        KIND_kernel,
        grid=(BLOCKS,),
        in_specs=[rows, rows, rows],
        out_specs=[rows, rows],
        out_shape=[like, like],
        interpret=jax.default_backend() == "cpu",
    )
    slopes: F32[N, C] = choose(
        grads,
        grads + 0.01 * params,
        jnp.clip(grads, -1.0, 1.0),
        normalised(grads),
        grads / jnp.maximum(jnp.linalg.norm(grads), 1.0),
        grads - jnp.mean(grads, axis=0),
        0.5 * grads,
        grads * jnp.minimum(1.0, 1.0 / jnp.sqrt(jnp.sum(grads**2) + 1e-6)),
    )
    new_params, new_moments = call(params, slopes, moments)
    return choose(
        (new_params, new_moments),
        (new_params, new_moments),
        (new_params - params, new_moments),
        (new_params, jnp.mean(jnp.square(new_params - params))),
        (0.9 * params + 0.1 * new_params, new_moments),
    )


@template("reduction kernel", "pallas", 2)
def block_KIND(x: F32[N, C]):
    """Compute the TITLE of blocks of rows, then that of all blocks."""
    C, ROWS, BLOCKS = choose(16, 32, 64, 128), choose(8, 16, 32), choose(2, 4, 8)
    N, KIND = ROWS * BLOCKS, choose("sum", "max", "sum_of_squares", "mean")
    TITLE = KIND.replace("_", " ")
    with module:

        def KIND_kernel(x_ref, out_ref):
            """Reduce the rows of a block."""
            inputs: F32[ROWS, C] = x_ref[...]
            block: F32[ROWS, C] = choose(
                inputs, activated(inputs, "kernel"), jnp.square(inputs), jnp.abs(inputs)
            )
            if KIND == "max":
                out_ref[...] = jnp.max(block, axis=0, keepdims=True)[None]
            elif KIND == "mean":
                out_ref[...] = jnp.mean(block, axis=0, keepdims=True)[None]
            elif KIND == "sum":
                out_ref[...] = jnp.sum(block, axis=0, keepdims=True)[None]
            else:
                out_ref[...] = jnp.sum(block * block, axis=0, keepdims=True)[None]

    call = pl.pallas_call(
        KIND_kernel,
        grid=(BLOCKS,),
        in_specs=[pl.BlockSpec((ROWS, C), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, 1, C), lambda i: (i, 0, 0)),
        out_shape=jax.ShapeDtypeStruct((BLOCKS, 1, C), x.dtype),
        interpret=jax.default_backend() == "cpu",
    )
    partial_results = call(x)
    if KIND == "max":
        y: F32[C] = jnp.max(partial_results, axis=(0, 1))
    elif KIND == "mean":
        y: F32[C] = jnp.mean(partial_results, axis=(0, 1))
    else:
        y: F32[C] = jnp.sum(partial_results, axis=(0, 1)) / x.shape[0]
    return more(y, most=2)


@template("attention kernel", "pallas", 2)
def KIND_attention_kernel(query: F32[N, H], keys: F32[M * STEPS, H], values: F32[M * STEPS, H]):
    """Compute KIND attention with a running softmax over blocks of keys."""
    N, H, M, STEPS = choose(16, 32), choose(16, 32), choose(16, 32), choose(1, 2, 4)
    KIND, SCALE = choose("flash", "capped", "scaled"), choose(0.25, 0.125, 0.5)
    with module:

        def KIND_kernel(query_ref, keys_ref, values_ref, out_ref):
            """Attend from all queries, one block of keys after another."""
            query = query_ref[...] * SCALE

            def attend(k, carry):
                largest, total, context = carry
                block = pl.ds(k * M, M)
                scores = jnp.dot(query, keys_ref[block, :].T)
                if KIND == "capped":
                    scores = 10.0 * jnp.tanh(scores / 10.0)
                new_largest = jnp.maximum(largest, jnp.max(scores, axis=-1))
                shrink = jnp.exp(largest - new_largest)
                weights = jnp.exp(scores - new_largest[:, None])
                new_total = shrink * total + jnp.sum(weights, axis=-1)
                context = context * shrink[:, None]
                return new_largest, new_total, context + jnp.dot(weights, values_ref[block, :])

            start = (
                jnp.full((N,), -1e9, jnp.float32),
                jnp.zeros((N,), jnp.float32),
                jnp.zeros((N, H), jnp.float32),
            )
            _, total, context = lax.fori_loop(0, STEPS, attend, start)
            out_ref[...] = context / total[:, None]

    call = pl.pallas_call(
        KIND_kernel,
        out_shape=jax.ShapeDtypeStruct(query.shape, query.dtype),
        interpret=jax.default_backend() == "cpu",
    )
    v: F32[M * STEPS, H] = choose(values, values, normalised(values), activated(values))
    y: F32[N, H] = call(query, keys, v)
    return more(y, query, most=2, style="layer")
