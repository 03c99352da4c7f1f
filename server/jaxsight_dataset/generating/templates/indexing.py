"""Templates that read and write elements by index."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("lookup", "indexing", 3)
def lookup_KIND(table: D[N, TAIL], ids: INDEX[S, below(N)], other_ids: INDEX[S, below(N)]):
    """Look up entries of a table by index."""
    D, N, TAIL, S = choose(F, F, F, INT, CPX), size(3, 32), shape(0, 2, 12), shape(0, 2, 8)
    KIND = choose("index", "take", "clip", "fill", "gather", "computed", "pairs")
    source: D[N, TAIL] = prepared(table)
    if KIND == "index":
        y: D[S, TAIL] = source[ids]
    elif KIND == "computed":
        places = choose((ids + 1) % N, (N - 1) - ids, ids // 2)
        y: D[S, TAIL] = source[places]
    elif KIND == "take":
        y: D[S, TAIL] = jnp.take(source, ids, axis=0)
    elif KIND == "clip":
        y: D[S, TAIL] = jnp.take(source, ids, axis=0, mode="clip")
    elif KIND == "fill":
        y: D[S, TAIL] = source.at[ids].get(mode="fill", fill_value=0)
    elif KIND == "pairs":
        first: D[S, TAIL] = source[ids]
        second: D[S, TAIL] = source[other_ids]
        y: D[S, TAIL] = binary(first, second)
    else:
        numbers = lax.GatherDimensionNumbers(
            offset_dims=tuple(range(len(S), len(S) + len(TAIL))),
            collapsed_slice_dims=(0,),
            start_index_map=(0,),
        )
        y: D[S, TAIL] = lax.gather(source, ids[..., None], numbers, (1, *TAIL))
    return more(y)


@template("scatter", "indexing", 7)
def scatter_KIND(state: D[N, TAIL], ids: INDEX[K, below(N)], updates: D[K, TAIL]):
    """Update rows of an array at indices."""
    D, N = choose(F, F, F, F, dtype("int32", "int64", "uint32", "int16")), size(4, 24)
    TAIL = shape(0, 2, 8)
    K = size(2, min(N, 12))
    KIND = choose(
        *"add max min multiply multiply set subtract drop scatter_add scatter_max".split(),
        *"scatter_sub scatter_min".split(),
    )
    changes: D[K, TAIL] = prepared(updates)
    # Those that do not commute need distinct places.
    places = (ids[0] + jnp.arange(K)) % N
    if KIND[:7] == "scatter":
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=tuple(range(1, 1 + len(TAIL))),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
        )
        y: D[N, TAIL] = lax.KIND(state, ids[:, None], changes, numbers)
    elif KIND == "multiply":
        y: D[N, TAIL] = state.at[places].multiply(changes, unique_indices=True)
    elif KIND == "set":
        y: D[N, TAIL] = state.at[places].set(changes)
    elif KIND == "drop":
        y: D[N, TAIL] = state.at[places].add(changes, mode="drop")
    else:
        y: D[N, TAIL] = state.at[ids].KIND(changes)
    return more(y, state)


@template("segments", "indexing")
def segment_KIND(x: F[K, TAIL], groups: INDEX[K, below(N)]):
    """Combine the rows of each segment."""
    K, N, TAIL = size(4, 32), size(2, 8), shape(0, 1, 6)
    KIND = choose("sum", "mean", "softmax", "bincount", "one_hot", "max")
    terms: F[K, TAIL] = prepared(x)
    if KIND == "sum":
        y: F[N, TAIL] = jax.ops.segment_sum(terms, groups, num_segments=N)
    elif KIND == "max":
        y: F[N, TAIL] = jnp.maximum(
            jax.ops.segment_max(terms, groups, num_segments=N), choose(-10.0, 0.0)
        )
    elif KIND == "mean":
        totals = jax.ops.segment_sum(terms, groups, num_segments=N)
        counts = jax.ops.segment_sum(jnp.ones_like(terms), groups, num_segments=N)
        y: F[N, TAIL] = totals / jnp.maximum(counts, 1.0)
    elif KIND == "softmax":
        exponents = jnp.exp(terms - jnp.max(terms, axis=0))
        totals = jax.ops.segment_sum(exponents, groups, num_segments=N)
        y: F[K, TAIL] = exponents / totals[groups]
    elif KIND == "bincount":
        counts = jnp.bincount(groups, length=N).astype(jnp.F)
        shares = counts / K
        y: F[TAIL, N] = jnp.mean(terms, axis=0)[..., None] * choose(
            shares, counts, jnp.log1p(counts)
        )
    else:
        y: F[N, TAIL] = jax.nn.one_hot(groups, N, dtype=jnp.F).T @ terms
    return more(y)


@template("dynamic slices", "indexing", 3)
def dynamic_KIND(
    x: D[S], start: INDEX[below(max(2, S[A] - K + 1))], patch: D[S[:A], K, S[A + 1 :]]
):
    """Read or write a window of K along axis A."""
    D, S = choose(F, F, INT, CPX), shape(1, 3, 16)
    A = between(0, len(S) - 1)
    K, KIND = between(1, S[A] - 1), choose("slice", "window", "update", "update", "index", "set")
    source: D[S] = prepared(x)
    if KIND == "slice":
        zero = jnp.zeros_like(start)
        STARTS = (
            "(" + "".join(["start, " if AXIS == A else "zero, " for AXIS in range(len(S))]) + ")"
        )
        y: D[S] = lax.dynamic_slice(source, STARTS, (*S[:A], K, *S[A + 1 :]))
    elif KIND == "window":
        y: D[S] = lax.dynamic_slice_in_dim(source, start, K, axis=A)
    elif KIND == "update":
        y: D[S] = lax.dynamic_update_slice_in_dim(source, patch, start, axis=A)
    elif KIND == "index":
        y: D[S[1:]] = lax.dynamic_index_in_dim(source, start, axis=A, keepdims=False)
    else:
        y: D[S] = source.at[start % S[0]].set(between(0, 2))
    return more(y)


@template("along an axis", "indexing")
def select_KIND(
    scores: F[N, M],
    columns: INDEX[N, K, below(M)],
    order: INDEX[M, "permutation"],
    labels: INDEX[N, below(M)],
    keep: BOOL[N, M],
    gates: F[N, M],
):
    """Select elements of a matrix."""
    N, M = size(2, 16), size(3, 16)
    K = between(1, M - 1)
    KIND = choose("along", "permuted", "picked", "masked", "diagonal", "inverse", "gated")
    source: F[N, M] = prepared(scores)
    if KIND == "along":
        y: F[N, K] = jnp.take_along_axis(source, columns, axis=1)
    elif KIND == "permuted":
        y: F[N, M] = source[:, order]
    elif KIND == "inverse":
        y: F[N, M] = source[:, jnp.argsort(order)]
    elif KIND == "picked":
        y: F[N] = source[jnp.arange(N), labels]
    elif KIND == "masked":
        y: F[N, M] = jnp.where(keep, source, choose(0.0, -1e4, 1.0))
    elif KIND == "diagonal":
        y: F[N] = choose(jnp.diagonal(source), jnp.diagonal(source, offset=1))
    else:
        chosen = compared(gates)
        y: F[N, M] = choose(
            jnp.where(chosen, source, gates), source * chosen, jnp.where(chosen, source, 0.0)
        )
    return more(y)


@template("integer indices", "indexing")
def NAME(x: F[N, TAIL], weights: F[3]):
    """TITLE."""
    N, TAIL = size(4, 32), shape(0, 1, 6)
    NAME, TITLE = choose(
        *(("second_difference", "Compute second differences"), ("gradient", "Compute slopes")),
        *(("smooth_neighbors", "Average each element with its neighbors"),),
        *(("stencil", "Apply a stencil of three points"), ("upwind", "Compute upwind differences")),
        *(
            ("local_maximum", "Compare each element with its neighbors"),
            ("lag", "Compare with the past"),
        ),
        *(("interleave", "Reorder elements"), ("mirror", "Combine elements with mirrored ones")),
    )
    source: F[N, TAIL] = prepared(x)
    index = jnp.arange(N)
    right: F[N, TAIL] = source[choose((index + 1) % N, jnp.minimum(index + 1, N - 1))]
    left: F[N, TAIL] = source[choose((index - 1) % N, jnp.maximum(index - 1, 0))]
    if NAME == "second_difference":
        y: F[N, TAIL] = left + right - 2.0 * source
    elif NAME == "gradient":
        y: F[N, TAIL] = choose(0.5 * (right - left), right - source, (right - left) / 2.0)
    elif NAME == "smooth_neighbors":
        y: F[N, TAIL] = choose((left + source + right) / 3.0, 0.5 * source + 0.25 * (left + right))
    elif NAME == "stencil":
        y: F[N, TAIL] = weights[0] * left + weights[1] * source + weights[2] * right
    elif NAME == "upwind":
        y: F[N, TAIL] = jnp.where(source > 0.0, source - left, right - source) * choose(source, 1.0)
    elif NAME == "local_maximum":
        y: F[N, TAIL] = choose(
            jnp.maximum(left, jnp.maximum(source, right)),
            source - jnp.maximum(left, right),
            jnp.where((x > left) & (x > right), x, 0.0),
        )
    elif NAME == "lag":
        LAG = between(1, 3)
        y: F[N, TAIL] = choose(
            source - source[(index - LAG) % N],
            source * source[(index - LAG) % N],
            0.9 * source + 0.1 * source[jnp.maximum(index - LAG, 0)],
        )
    elif NAME == "interleave":
        y: F[N, TAIL] = choose(
            source[index[::-1]], source[(index * 3) % N], source[(N - 1) - index]
        )
    else:
        y: F[N, TAIL] = choose(
            0.5 * (source + source[N - 1 - index]), source - source[N - 1 - index]
        )
    return more(y, most=2)


@template("running extremes", "indexing", 3)
def SIDE_by_index(values: D[K, TAIL], ids: INDEX[K, below(N)], records: D[N, TAIL]):
    """Keep the SIDE of values by index."""
    D = choose(W, W, W, dtype("int32", "int64", "uint32"))
    N, K, TAIL = size(3, 16), size(3, 24), shape(0, 1, 6)
    SIDE, KIND = choose("max", "max", "min"), choose("at", "full", "lax")
    FILL = 0 if SIDE == "max" else 99
    updates: D[K, TAIL] = values if "int" in D else prepared(values)
    start = choose(records, jnp.full((N, *TAIL), FILL, jnp.D))
    if KIND == "lax":
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=tuple(range(1, 1 + len(TAIL))),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
        )
        y: D[N, TAIL] = lax.scatter_SIDE(start, ids[:, None], updates, numbers)
    else:
        y: D[N, TAIL] = start.at[ids].SIDE(updates)
    return choose(
        y,
        y - start,
        jnp.where(y > start, y, 0.5 * start).astype(y.dtype),
        y * y,
        jnp.sum(y, axis=-1, dtype=y.dtype),
    )
