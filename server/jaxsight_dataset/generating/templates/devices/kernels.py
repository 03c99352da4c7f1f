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
    NAME, BLOCKS = choose("activation", "residual", "gate", "blend"), choose(2, 4, 8)
    N = ROWS * BLOCKS
    with module:

        def NAME_kernel(x_ref, y_ref, bias_ref, out_ref):
            """Combine a block of rows with the bias."""
            values: D[ROWS, C] = x_ref[...]
            others: D[ROWS, C] = y_ref[...]
            inputs: D[ROWS, C] = values + bias_ref[...]
            inner: D[ROWS, C] = activated(inputs, "kernel")
            out_ref[...] = choose(
                inner + others,
                inner * jax.nn.sigmoid(others),
                values + inner * others,
                jnp.maximum(inner, others),
                jnp.where(others > 0.0, inner, 0.1 * values),
                jnp.square(inner - others),
            )

    rows = pl.BlockSpec((ROWS, C), lambda i: (i, 0))
    call = pl.pallas_call(
        NAME_kernel,
        grid=(BLOCKS,),
        in_specs=[rows, rows, pl.BlockSpec((1, C), lambda i: (0, 0))],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=jax.default_backend() == "cpu",
    )
    result: D[N, C] = call(x, y, bias)
    return more(result, most=2)


@template("tiled matmul kernel", "pallas", 3)
def tiled_NAME(x: F32[M * TILES, K * STEPS], y: F32[K * STEPS, N * COLUMNS]):
    """Multiply matrices tile by tile, and apply NAME to the product."""
    M, N, K = choose(16, 32), choose(16, 32), choose(16, 32)
    TILES, COLUMNS, STEPS = between(1, 3), between(1, 2), choose(1, 2, 4)
    NAME = choose("product", "projection", "dense_layer", "scores")
    with module:

        def NAME_kernel(x_ref, y_ref, out_ref):
            """Compute a tile of the product over blocks of the inner dimension."""

            def add_block(k, total):
                block = pl.ds(k * K, K)
                return total + jnp.dot(x_ref[:, block], y_ref[block, :])

            zeros = jnp.zeros(out_ref.shape, jnp.float32)
            product: F32[M, N] = (
                jnp.dot(x_ref[...], y_ref[...])
                if STEPS == 1
                else lax.fori_loop(0, STEPS, add_block, zeros)
            )
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
def KIND_rows(x: D[N, C]):
    """Apply KIND to the rows of a block, in a kernel."""
    D, C, ROWS = dtype("float32", "float32", "bfloat16"), choose(16, 32, 64, 128), choose(8, 16, 32)
    BLOCKS, EPSILON = choose(1, 2, 4, 8), choose(1e-5, 1e-3)
    N, KIND = ROWS * BLOCKS, choose("softmax", "layer_norm", "rms_norm", "log_softmax")
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
            return rows * lax.rsqrt(jnp.mean(rows**2, axis=-1, keepdims=True) + EPSILON)

        def KIND_kernel(x_ref, out_ref):
            """Normalise the rows of a block."""
            inputs: D[ROWS, C] = x_ref[...]
            rows: D[ROWS, C] = choose(
                inputs, activated(inputs, "kernel"), inputs / choose(0.5, 2.0)
            )
            out_ref[...] = KIND(rows)

    rows = pl.BlockSpec((ROWS, C), lambda i: (i, 0))
    call = pl.pallas_call(
        KIND_kernel,
        grid=(BLOCKS,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=jax.default_backend() == "cpu",
    )
    normal: D[N, C] = call(x)
    y: D[N, C] = choose(normal, normal, x + normal, normal * x)
    return more(y, most=2, style="layer")


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
