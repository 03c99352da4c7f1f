"""Templates of reductions, cumulative functions, sorting and windows."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("statistics", "reductions", 3)
def NAME_of_axis_A(x: F[S]):
    """Compute statistics over axis A."""
    S, NAME = shape(1, 5, 32), choose("statistics", "summary", "moments")
    A, COUNT = between(0, len(S) - 1), between(1, 3)
    source: F[S] = prepared(x)
    total: F[S[1:]] = reduced(source, axis=A)
    for K in range(COUNT):
        inner_K: F[S] = choose(mapped(x), prepared(source))
        other_K: F[S[1:]] = reduced(inner_K, axis=A)
        total: F[S[1:]] = binary(total, other_K)
    if chance(0.25):
        rest: F[S[1:]] = reduced(x, axis=A)
        return total, rest
    return more(total, most=2)


@template("bitwise reduction", "reductions", 5)
def reduce_KIND_of_bits(x: D[S]):
    """Reduce D values over axis A with bitwise KIND."""
    D, S, KIND = choose(INT, INT, "bool"), shape(1, 4, 16), choose("and", "or", "xor", "xor")
    A = between(0, len(S) - 1)
    FULL = True if D == "bool" else -1 if D[0] == "i" else 2 ** int(D[4:]) - 1
    NONE = False if D == "bool" else 0
    source: D[S] = x if D == "bool" else choose(x, mapped(x), prepared(x))
    if chance(0.4):
        start = jnp.array(FULL if KIND == "and" else NONE, jnp.D)
        y: D[S[1:]] = lax.reduce(source, start, lax.bitwise_KIND, (A,))
    elif D != "bool" and chance(0.4):
        y: D[S[1:]] = jnp.bitwise_KIND.reduce(source, axis=A)
    else:
        y: D[S[1:]] = lax.reduce_KIND(source, axes=(A,))
    if chance(0.3):
        z: F[S[1:]] = number(y)
        return more(z, most=3)
    return more(y, most=3)


@template("general reduction", "reductions")
def reduce_NAME(x: W[S]):
    """Reduce over axis A with TITLE."""
    S, NAME = shape(1, 4, 12), choose("rows", "values", "columns")
    A = between(0, len(S) - 1)
    # JAX's derivative of a reduction requires an associative function, and its identity.
    FUNCTION, TITLE = choose(
        ("hypotenuse", "the Euclidean norm"),
        ("root_of_squares", "the Euclidean norm"),
        ("compound", "compound growth"),
        ("add_velocities", "relativistic addition of velocities"),
    )
    source: W[S] = jnp.tanh(choose(x, prepared(x)))

    def FUNCTION(left, right):
        if FUNCTION == "hypotenuse":
            return jnp.hypot(left, right)
        if FUNCTION == "root_of_squares":
            return jnp.sqrt(left**2 + right**2)
        if FUNCTION == "compound":
            return left + right + choose(0.1, 0.5, 1.0) * left * right
        return (left + right) / (1.0 + left * right)

    y: W[S[1:]] = lax.reduce(source, jnp.zeros((), jnp.W), FUNCTION, (A,))
    return more(y)


@template("cumulative", "reductions")
def running_NAME(x: F[S]):
    """Compute cumulative functions of a series."""
    S, NAME = shape(1, 4, 24), choose("series", "path", "curve", "profile")
    y: F[S] = scanned(prepared(x))
    if chance(0.5):
        y: F[S] = scanned(y)
    if chance(0.4):
        y: F[S] = mapped(y)
    return more(y, x, most=3)


@template("integer cumulative", "reductions", 3)
def KIND_of_counts(x: INT[S]):
    """Sort or accumulate INT values along axis A."""
    S, A = shape(1, 3, 24), 0
    KIND = choose("cumsum", "cumprod", "cummax", "cummin", "order", "descent")
    y: INT[S] = choose(x, mapped(x, 2), mixed(x))
    if KIND == "order":
        z: INT[S] = jnp.sort(y, axis=A)
    elif KIND == "descent":
        z: INT[S] = jnp.sort(y, axis=A, descending=True)
    else:
        z: INT[S] = choose(lax.KIND(y, axis=A), lax.KIND(y, axis=A, reverse=True))
    if chance(0.3):
        levels: F[S] = number(z)
        return more(levels, most=3)
    return more(z, x, most=3)


@template("sorting", "reductions")
def order_by_KIND(x: F[S, N], payload: F[S, N]):
    """Order F values along an axis."""
    S, N = shape(0, 2, 12), size(2, 32)
    K, BINS = min(N, between(1, 5)), size(4, 16)
    KIND = choose("value", "position", "top", "key", "rank", "quantile", "bucket", "approximation")
    if KIND == "value":
        y: F[S, N] = choose(
            lax.sort(x, dimension=len(S)),
            jnp.sort(x, axis=0, descending=True),
            jnp.sort(x, axis=-1),
        )
    elif KIND == "position":
        order = jnp.argsort(x, axis=-1)
        y: F[S, N] = jnp.take_along_axis(x, order[..., ::-1], axis=-1)
    elif KIND in ("top", "approximation"):
        best, where = (
            choose(lax.top_k(x, K), lax.top_k(x, K)) if KIND == "top" else lax.approx_max_k(x, K)
        )
        y: F[S, K] = best + choose(0.1, 0.5) * where.astype(jnp.F)
    elif KIND == "key":
        ordered, carried = lax.sort((x, payload), num_keys=1)
        if chance(0.5):
            return carried, jnp.max(ordered, axis=-1)
        y: F[S, N] = carried + 0.1 * ordered
    elif KIND == "rank":
        ranks = jnp.argsort(jnp.argsort(x, axis=-1), axis=-1).astype(jnp.F)
        y: F[S, N] = choose(x + 0.5 * ranks, jnp.tanh(x) * ranks)
    elif KIND == "quantile":
        wide = x.astype(jnp.float32)
        y: F32[S] = jnp.quantile(wide, choose(0.25, 0.5, 0.75, 0.9), axis=-1)
    else:
        edges = jnp.linspace(-3.0, 3.0, BINS, dtype=jnp.F)
        bucket = choose(jnp.searchsorted(edges, x), jnp.digitize(x, edges))
        y: F[S, N] = x + 0.1 * bucket.astype(jnp.F)
    return more(y, most=3)


@template("windows", "reductions", 3)
def KIND_of_windows(x: W[S]):
    """Pool windows of an array (KIND)."""
    S, KIND = shape(1, 3, 16), choose("sums", "maxima", "minima", "products", "norms")
    FUNCTION, START = {
        "sums": ("lax.add", "0.0"),
        "maxima": ("lax.max", "-jnp.inf"),
        "minima": ("lax.min", "jnp.inf"),
        "products": ("lax.mul", "1.0"),
        "norms": ("combine", "0.0"),
    }[KIND]
    WINDOW, STRIDES = [min(N, between(1, 3)) for N in S[1:]], [choose(1, 1, 2) for N in S]
    WINDOW, STRIDES, PADDING = (2, *WINDOW), tuple(STRIDES), choose("SAME", "VALID")
    source: W[S] = prepared(x)

    def combine(left, right):
        return jnp.hypot(left, right)

    if KIND in ("products", "norms"):
        start = jnp.array(START, jnp.W)
        inner: W[S] = jnp.tanh(source)
        y: W[S] = lax.reduce_window(inner, start, FUNCTION, WINDOW, STRIDES, "PADDING")
    else:
        y: W[S] = lax.reduce_window(source, START, FUNCTION, WINDOW, STRIDES, "PADDING")
    if KIND in ("maxima", "minima", "sums"):
        return more(y)
    return more(y, most=3)


@template("windows of other operations", "reductions", 3)
def NAME_of_windows(x: D[S]):
    """Reduce windows of an array with FUNCTION."""
    D, S = choose(W, INT), shape(1, 3, 16)
    NAME, FUNCTION, START = (
        choose(
            ("product", "lax.mul", 1.0),
            ("log_sum", "jnp.logaddexp", -9.0),
            ("norm", "jnp.hypot", 0.0),
        )
        if D == W
        else choose(
            ("product", "lax.mul", 1),
            ("union", "lax.bitwise_or", 0),
            ("parity", "lax.bitwise_xor", 0),
        )
    )
    WINDOW, STRIDES = [min(N, between(1, 3)) for N in S[1:]], [choose(1, 1, 2) for N in S]
    WINDOW, STRIDES, PADDING = (2, *WINDOW), tuple(STRIDES), choose("SAME", "VALID")
    source: D[S] = jnp.tanh(x) if D == W else choose(x, mapped(x))
    start = jnp.array(START, jnp.D)
    y: D[S] = lax.reduce_window(source, start, FUNCTION, WINDOW, STRIDES, "PADDING")
    if D != W and chance(0.4):
        z: F[S] = number(y)
        return more(z)
    return more(y)


@template("norms and distances", "reductions")
def KIND_NAME(x: F[S], y: F[S]):
    """Compute a KIND NAME."""
    S, A = shape(1, 3, 32), choose(None, 0)
    KIND = choose("squared", "absolute", "cosine", "huber", "kl", "log_cosh", "hinge", "chebyshev")
    NAME = choose("loss", "distance", "divergence", "error")
    left: F[S] = prepared(x)
    right: F[S] = prepared(y)
    if KIND == "squared":
        terms: F[S] = (left - right) ** 2 / 4.0
    elif KIND == "absolute":
        terms: F[S] = jnp.abs(left - right)
    elif KIND == "chebyshev":
        terms: F[S] = jnp.maximum(jnp.abs(left), jnp.abs(right))
    elif KIND == "cosine":
        norms = jnp.linalg.norm(left) * jnp.linalg.norm(right) + 1e-1
        terms: F[S] = left * right / norms
    elif KIND == "huber":
        gap = x - y
        terms: F[S] = jnp.where(jnp.abs(gap) < 1.0, 0.5 * gap**2, jnp.abs(gap) - 0.5)
    elif KIND == "kl":
        log_p = jax.nn.log_softmax(left, axis=-1)
        log_q = jax.nn.log_softmax(right, axis=-1)
        terms: F[S] = jnp.exp(log_p) * (log_p - log_q)
    elif KIND == "log_cosh":
        terms: F[S] = jnp.log(jnp.cosh(jnp.clip(left - right, -4.0, 4.0)))
    else:
        terms: F[S] = jax.nn.relu(1.0 - left * right) + 0.1 * left
    total: F[S[1:]] = reduced(terms, axis=A)
    if A is None:
        return total
    return more(total, most=3)


@template("normalisation", "reductions")
def normalize_NAME(x: F[S]):
    """Compute normalised values and functions of them."""
    S, NAME = shape(1, 4, 24), choose("rows", "features", "scores")
    y: F[S] = normalised(prepared(x))
    y: F[S] = mapped(y)
    if chance(0.5):
        y: F[S] = normalised(y)
    return more(y, x, most=3)


@template("selection", "reductions", 4)
def KIND_along_axis(x: D[S]):
    """Find KIND along axis A."""
    D, S = choose(F, F, INT), shape(1, 4, 24)
    A = between(0, len(S) - 1)
    KIND = choose("argmax", "argmin", "lax_argmax", "lax_argmin", "count", "any", "nonzero")
    mask = compared(x)
    if KIND in ("argmax", "argmin"):
        place: I64[S[1:]] = jnp.KIND(x, axis=A)
    elif KIND in ("lax_argmax", "lax_argmin"):
        FUNCTION = "lax." + KIND[4:]
        place: INDEX[S[1:]] = FUNCTION(x, A, jnp.INDEX)
    elif KIND == "count":
        place: I64[S[1:]] = jnp.sum(mask, axis=A)
    elif KIND == "any":
        place: BOOL[S[1:]] = jnp.any(mask, axis=A)
    else:
        place: I64[S[1:]] = jnp.count_nonzero(mask, axis=A)
    if D == F and chance(0.6):
        values: F[S[1:]] = reduced(x, axis=A)
        y: F[S[1:]] = values + 0.1 * place.astype(jnp.F)
        return more(y, most=3)
    return more(place, most=2)


@template("nearest elements", "reductions", 2)
def nearest_KIND_by_NAME(points: W[N, M], centers: W[K, M]):
    """Find the nearest centers by NAME distance."""
    N, K, M = size(3, 24), size(2, 12), size(2, 8)
    NAME = choose("euclidean", "manhattan", "chebyshev", "soft")
    KIND = choose("quantized", "residual", "cost", "counts", "update", "mask")
    gaps = points[:, None, :] - centers[None, :, :]
    if NAME == "euclidean":
        distances: W[N, K] = jnp.sum(jnp.square(gaps), axis=-1)
    elif NAME == "manhattan":
        distances: W[N, K] = jnp.sum(jnp.abs(gaps), axis=-1)
    elif NAME == "chebyshev":
        distances: W[N, K] = jnp.max(jnp.abs(gaps), axis=-1)
    else:
        distances: W[N, K] = jnp.sum(jnp.log1p(jnp.square(gaps)), axis=-1)
    nearest = choose(jnp.argmin(distances, axis=1), lax.argmin(distances, 1, jnp.int32))
    if KIND == "quantized":
        y: W[N, M] = centers[nearest]
        return more(y)
    if KIND == "residual":
        y: W[N, M] = points - centers[nearest]
    elif KIND == "cost":
        y: W[N] = jnp.take_along_axis(distances, nearest[:, None], axis=1)[:, 0]
    elif KIND == "counts":
        y: W[K] = jnp.bincount(nearest, length=K).astype(jnp.W)
    elif KIND == "update":
        sums = jax.ops.segment_sum(points, nearest, num_segments=K)
        members = jnp.bincount(nearest, length=K)[:, None]
        y: W[K, M] = sums / jnp.maximum(members, 1).astype(sums.dtype)
    else:
        y: W[N, K] = jax.nn.one_hot(nearest, K, dtype=jnp.W) * distances
    return more(y)


@template("checks", "reductions", 2)
def check_NAME(x: F[S]):
    """Keep what fulfils a condition along all of axis A."""
    S, NAME = shape(1, 3, 12), choose("rows", "columns", "values")
    A = between(0, len(S) - 1)
    mask = choose(compared(x), jnp.isfinite(x), jnp.abs(x) < choose(1.5, 2.0, 3.0))
    valid = choose(
        jnp.all(mask, axis=A, keepdims=True), jnp.expand_dims(lax.reduce_and(mask, axes=(A,)), A)
    )
    scaled: F[S] = mapped(x)
    y: F[S] = jnp.where(valid, scaled, choose(0.5, 0.2) * x)
    return more(y)
