"""Templates that read and write elements by index."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("lookup", "indexing", 3)
def lookup_KIND(table: D[N, TAIL], ids: INDEX[S, below(N)]):
    """Look up entries of a table by index."""
    D, N, TAIL, S = choose(F, F, F, INT, CPX), size(3, 32), shape(0, 2, 12), shape(0, 2, 8)
    KIND = choose("index", "take", "fill", "gather", "computed")
    source: D[N, TAIL] = prepared(table)
    if KIND == "index":
        y: D[S, TAIL] = source[ids]
    elif KIND == "computed":
        places = choose((ids + 1) % N, (N - 1) - ids, ids // 2)
        y: D[S, TAIL] = source[places]
    elif KIND == "take":
        y: D[S, TAIL] = choose(
            jnp.take(source, ids, axis=0), jnp.take(source, ids, axis=0, mode="clip")
        )
    elif KIND == "fill":
        y: D[S, TAIL] = source.at[ids].get(mode="fill", fill_value=0)
    else:
        numbers = lax.GatherDimensionNumbers(
            offset_dims=tuple(range(len(S), len(S) + len(TAIL))),
            collapsed_slice_dims=(0,),
            start_index_map=(0,),
        )
        y: D[S, TAIL] = lax.gather(source, ids[..., None], numbers, (1, *TAIL))
    return more(y)


@template("scatter", "indexing", 9)
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
    KIND = choose("sum", "mean", "softmax", "bincount", "max")
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
    else:
        counts = jnp.bincount(groups, length=N).astype(jnp.F)
        y: F[TAIL, N] = jnp.mean(terms, axis=0)[..., None] * choose(counts, jnp.log1p(counts))
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
