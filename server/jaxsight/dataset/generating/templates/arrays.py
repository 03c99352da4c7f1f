"""Templates that create, move and join arrays."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("movement", "array", 3)
def rearrange_NAME(x: D[S]):
    """Rearrange an array of D."""
    D, S = choose(F, INT, F, CPX, "bool"), shape(2, 5, 12)
    NAME = choose("axes", "elements", "array", "blocks")
    y: D[S] = moved(prepared(x))
    for K in range(2):
        y: D[S] = moved(y)
    return more(y, most=3)


@template("joining", "array")
def KIND_parts(first: D[HEAD, N, TAIL], second: D[HEAD, M, TAIL], third: D[HEAD, K, TAIL]):
    """Join arrays of D with KIND."""
    D, HEAD, TAIL = choose(F, INT, CPX, "bool", F), shape(0, 2, 6), shape(0, 1, 6)
    KIND = choose("concatenate", "stack", "hstack", "vstack", "append")
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
    elif KIND == "stack":
        y: D[HEAD, N, TAIL, 2] = choose(
            jnp.stack([one, other], axis=AXIS), jnp.stack([one, other, third], axis=AXIS)
        )
    else:
        y: D[HEAD, N, TAIL] = choose(jnp.KIND([one, other]), jnp.KIND([one, other, third]))
    return more(y)


@template("padding and slicing", "array", 3)
def KIND_of_NAME(x: D[S]):
    """Slice, pad or tile an array of D."""
    D, S = choose(F, INT, CPX, F), shape(1, 4, 16)
    KIND = choose("padding", "window", "split", "stride", "frames", "tiling", "tiling", "reversal")
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
    elif KIND == "stride":
        y: D[S] = choose(x1[::2], x1[..., ::2], x1[..., ::-1])
    elif KIND == "frames":
        K = min(S[0], between(2, 4))
        positions = jnp.arange(S[0] - K + 1)[:, None] + jnp.arange(K)[None, :]
        y: D[S, 2] = x1[positions]
    elif KIND == "tiling":
        y: D[S] = jnp.tile(x1, tuple([choose(1, 2, 3) for N in S]))
    else:
        y: D[S] = lax.rev(x1, (A,))
    return more(y)


@template("creation", "array")
def modulated_KIND(amplitude: W[A]):
    """Modulate a pattern made by KIND."""
    N, M = size(2, 24), size(2, 24)
    KIND = choose("linspace", "arange", "iota", "meshgrid", "eye", "tri", "logspace")
    A = choose((), (M,))
    if KIND in ("linspace", "logspace"):
        grid: W[M] = jnp.KIND(-1.0, 1.0, M, dtype=jnp.W)
    elif KIND == "arange":
        grid: W[M] = jnp.arange(M, dtype=jnp.W) / float(M)
    elif KIND == "iota":
        grid: W[N, M] = 0.1 * lax.broadcasted_iota(jnp.W, (N, M), between(0, 1))
    elif KIND == "meshgrid":
        height = jnp.linspace(0.0, 1.0, N, dtype=jnp.W)
        width = jnp.linspace(0.0, 1.0, M, dtype=jnp.W)
        if chance(0.5):
            rows, columns = jnp.meshgrid(height, width, indexing="ij")
        else:
            columns, rows = jnp.meshgrid(width, height, indexing="xy")
        grid: W[N, M] = choose(rows * columns, rows - columns, jnp.hypot(rows, columns))
    else:
        grid: W[N, M] = jnp.KIND(N, M, k=between(-1, 1), dtype=jnp.W)
    wave: W[_] = mapped(grid)
    y: W[_] = choose(amplitude * wave, jnp.sin(amplitude) + wave, amplitude * grid - wave)
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
    if not BATCH and chance(0.2):
        column: D[N, M] = jnp.broadcast_to(left[:, None], (N, M))
    table: D[BATCH, N, M] = binary(column, row)
    if chance(0.4):
        table: D[BATCH, N, M] = mapped(table)
    return more(table)


@template("conversion", "array")
def convert_START_to_TARGET(x: START[S]):
    """Convert START values to TARGET."""
    START = dtype(*"float32 float64 bfloat16 float16 int8 int16 int32 uint8 bool".split())
    S, TARGET = shape(0, 5, 12), dtype("float32", "float64", "bfloat16", "float16")
    y: START[S] = prepared(x)
    if chance(0.3) and START != "bool":
        flags: BOOL[S] = compared(x)
        z: TARGET[S] = number(y, TARGET) * jnp.where(flags, 1.0, -0.5).astype(jnp.TARGET)
    else:
        z: TARGET[S] = number(y, TARGET)
    return more(z)
