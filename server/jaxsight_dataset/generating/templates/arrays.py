"""Templates that create, move and join arrays."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("movement", "array", 3)
def rearrange_NAME(x: D[S]):
    """Rearrange an array of D."""
    D, S = choose(F, INT, F, CPX, "bool"), shape(2, 5, 12)
    NAME = choose("axes", "elements", "array", "blocks")
    y: D[S] = moved(prepared(x))
    if chance(0.7):
        y: D[S] = moved(y)
    return more(y, most=2)


@template("joining", "array")
def KIND_parts(first: D[HEAD, N, TAIL], second: D[HEAD, M, TAIL], third: D[HEAD, K, TAIL]):
    """Join arrays of D with KIND."""
    D, HEAD, TAIL = choose(F, INT, CPX, "bool", F), shape(0, 2, 6), shape(0, 1, 6)
    KIND = choose("concatenate", "stack", "append")
    N, AXIS, COUNT = size(2, 10), len(HEAD), between(2, 3)
    M, K = (size(2, 10), size(2, 10)) if KIND in ("concatenate", "append") else (N, N)
    one: D[HEAD, N, TAIL] = prepared(first)
    other: D[HEAD, M, TAIL] = prepared(second)
    if KIND == "append":
        y: D[HEAD, N, TAIL] = jnp.append(one, other, axis=AXIS)
    elif KIND == "concatenate":
        y: D[HEAD, N, TAIL] = choose(
            jnp.concatenate([one, other], axis=AXIS),
            jnp.concatenate([one, other, third], axis=AXIS),
        )
    else:
        y: D[HEAD, N, TAIL, 2] = choose(
            jnp.stack([one, other], axis=AXIS), jnp.stack([one, other, third], axis=AXIS)
        )
    return more(y)


@template("padding and slicing", "array", 3)
def KIND_of_NAME(x: D[S]):
    """Slice, pad or tile an array of D."""
    D, S = choose(F, INT, CPX, F), shape(1, 4, 16)
    KIND = choose("padding", "window", "split", "frames", "tiling", "tiling", "reversal")
    NAME = choose("edges", "borders", "blocks")
    A = between(0, len(S) - 1)
    x1: D[S] = prepared(x)
    if KIND == "padding":
        WIDTHS = [(choose(0, 1, -1) if N > 3 else 0, between(0, 2), choose(0, 0, 1, 2)) for N in S]
        y: D[S] = lax.pad(x1, jnp.zeros((), jnp.D), tuple(WIDTHS))
    elif KIND == "window":
        STARTS = tuple([between(0, N // 3) for N in S])
        STOPS = tuple([N - between(0, N // 4) for N in S])
        y: D[S] = lax.slice(x1, STARTS, STOPS, tuple([choose(1, 1, 2) for N in S]))
    elif KIND == "split":
        HALF = S[A] // 2
        upper, lower = lax.split(x1, (HALF, S[A] - HALF), axis=A)
        joined: D[S] = jnp.concatenate([lower, upper], axis=A)
        y: D[S] = binary(joined, x)
    elif KIND == "frames":
        K = min(S[0], between(2, 4))
        positions = jnp.arange(S[0] - K + 1)[:, None] + jnp.arange(K)[None, :]
        y: D[S, 2] = x1[positions]
    elif KIND == "tiling":
        y: D[S] = jnp.tile(x1, tuple([choose(1, 2, 3) for N in S]))
    else:
        y: D[S] = lax.rev(x1, (A,))
    return more(y)


@template("broadcasting", "array")
def outer_NAME(rows: D[BATCH, N], columns: D[BATCH, M]):
    """Combine all rows with all columns."""
    D, BATCH, N, M = choose(F, F, INT), choose((), (), shape(1, 1, 6)), size(2, 32), size(2, 32)
    NAME = choose("products", "table", "pairs")
    left: D[BATCH, N] = prepared(rows)
    right: D[BATCH, M] = prepared(columns)
    column: D[BATCH, N, 1] = left[..., :, None]
    row: D[BATCH, 1, M] = right[..., None, :]
    table: D[BATCH, N, M] = binary(column, row)
    return more(table)
