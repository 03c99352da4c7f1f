"""Templates of reductions, cumulative functions, sorting and windows."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

STATISTICS = {
    ("pair_of_moments", "Compute two statistics"): "",
    ("range_and_mean", "Summarize values in two numbers"): "",
    ("first_and_second", "Compare two statistics"): "",
    ("covariance", "Compute covariances"): """
        centered = source - jnp.mean(source, axis=A, keepdims=True)
        choose(
            jnp.mean(centered * (y - jnp.mean(y, axis=A, keepdims=True)), axis=A),
            jnp.mean(source * y, axis=A) - jnp.mean(source, axis=A) * jnp.mean(y, axis=A),
            jnp.sum(centered * y, axis=A) / S[A],
        )
        """,
    ("correlation", "Compute correlations"): """
        left = source - jnp.mean(source, axis=A, keepdims=True)
        right = y - jnp.mean(y, axis=A, keepdims=True)
        scale = jnp.sqrt(jnp.sum(left**2, axis=A) * jnp.sum(right**2, axis=A) + EPSILON)
        jnp.sum(left * right, axis=A) / scale
        """,
    ("weighted_mean", "Compute weighted means"): """
        total = jnp.sum(weights)
        choose(
            jnp.sum(broadcast * source, axis=A) / total,
            jnp.average(source, axis=A, weights=weights),
            jnp.tensordot(source, weights / total, axes=(A, 0)),
        )
        """,
    ("weighted_variance", "Compute weighted variances"): """
        shares = broadcast / jnp.sum(weights)
        mean = jnp.sum(shares * source, axis=A, keepdims=True)
        jnp.sum(shares * choose((source - mean) ** 2, jnp.abs(source - mean)), axis=A)
        """,
    ("standard_error", "Compute standard errors"): """
        choose(
            jnp.std(source, axis=A) / jnp.sqrt(S[A]),
            jnp.sqrt(jnp.var(source, axis=A) / S[A]),
            jnp.std(source, axis=A, ddof=1) / jnp.sqrt(S[A]),
        )
        """,
    ("pooled_t", "Compute t statistics of two samples"): """
        gap = jnp.mean(source, axis=A) - jnp.mean(y, axis=A)
        spread = jnp.var(source, axis=A) + jnp.var(y, axis=A)
        choose(
            gap / jnp.sqrt(spread / S[A] + EPSILON), gap * lax.rsqrt(spread + EPSILON),
            gap / jnp.sqrt(spread + EPSILON),
        )
        """,
    ("slope", "Fit slopes of lines"): """
        left = source - jnp.mean(source, axis=A, keepdims=True)
        choose(
            jnp.sum(left * y, axis=A) / (jnp.sum(left**2, axis=A) + EPSILON),
            jnp.mean(y, axis=A) - jnp.sum(left * y, axis=A) / (jnp.sum(left**2, axis=A) + EPSILON),
        )
        """,
    ("rmse", "Compute errors of predictions"): """
        errors = choose(source - y, y - source)
        choose(
            jnp.sqrt(jnp.mean(errors**2, axis=A) + EPSILON), jnp.mean(jnp.abs(errors), axis=A),
            1.0 - jnp.sum(errors**2, axis=A) / (jnp.sum(y**2, axis=A) + EPSILON),
            jnp.sqrt(jnp.mean(jnp.square(errors), axis=A)) / (jnp.std(y, axis=A) + EPSILON),
        )
        """,
    ("log_mean_exp", "Average in log space"): """
        choose(
            jax.nn.logsumexp(source, axis=A) - jnp.log(S[A]),
            jax.nn.logsumexp(source, axis=A, b=broadcast),
            jnp.log(jnp.mean(jnp.exp(source - y), axis=A)),
        )
        """,
    ("soft_extremes", "Compute smooth extreme values"): """
        probabilities = jax.nn.softmax(choose(source, -source, 3.0 * source), axis=A)
        choose(jnp.sum(probabilities * source, axis=A), jnp.sum(probabilities * y, axis=A))
        """,
    ("sharpe_ratio", "Compute ratios of means to deviations"): """
        excess = choose(source - y, source)
        choose(
            jnp.mean(excess, axis=A) / (jnp.std(excess, axis=A) + EPSILON),
            jnp.mean(excess, axis=A) * lax.rsqrt(jnp.var(excess, axis=A) + EPSILON),
            jnp.mean(excess, axis=A) / (jnp.mean(jnp.maximum(-excess, 0.0), axis=A) + 0.1),
        )
        """,
}
"""Names and titles of statistics along an axis, with their lines."""


@template("statistics", "reductions", 3)
def NAME(x: F[S], y: F[S], weights: F[S[A], "positive"]):
    """TITLE."""
    S, EPSILON = shape(1, 5, 32), choose(1e-3, 1e-2)
    A = between(0, len(S) - 1)
    NAME, TITLE = choose(*STATISTICS)
    LINES = STATISTICS[(NAME, TITLE)]
    source: F[S] = choose(x, x, prepared(x))
    broadcast = choose(
        weights.reshape(*([1] * A), S[A], *([1] * (len(S) - A - 1))),
        jnp.expand_dims(weights, tuple([K for K in range(len(S)) if K != A])),
    )
    if NAME in ("pair_of_moments", "range_and_mean", "first_and_second"):
        first: F[S[1:]] = reduced(source, axis=A)
        second: F[S[1:]] = reduced(x, axis=A)
        return choose((first, second), jnp.stack([first, second]), first - second, first * second)
    z: F[S[1:]] = formula(LINES)
    return more(z, most=1)


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
    source: W[S] = choose(jnp.tanh(x), 0.5 * jnp.tanh(x), jnp.clip(x, -0.9, 0.9))

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
    """Follow a NAME as it goes on."""
    S, NAME = shape(1, 4, 24), choose("series", "path", "curve", "profile")
    y: F[S] = scanned(prepared(x))
    return more(y, most=1)


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
        if chance(0.5):
            return best, where
        y: F[S, K] = choose(best, best - jnp.mean(x, axis=-1, keepdims=True), jax.nn.softmax(best))
    elif KIND == "key":
        ordered, carried = lax.sort((x, payload), num_keys=1)
        if chance(0.5):
            return carried, jnp.max(ordered, axis=-1)
        y: F[S, N] = choose(carried, jnp.cumsum(carried, axis=-1), carried * ordered)
    elif KIND == "rank":
        ranks = jnp.argsort(jnp.argsort(x, axis=-1), axis=-1).astype(jnp.F)
        y: F[S, N] = choose(ranks / N, x * ranks, ranks - 0.5 * N + x, payload * ranks)
    elif KIND == "quantile":
        wide = x.astype(jnp.float32)
        y: F32[S] = jnp.quantile(wide, choose(0.25, 0.5, 0.75, 0.9), axis=-1)
    else:
        edges = jnp.linspace(-3.0, 3.0, BINS, dtype=jnp.F)
        bucket = choose(jnp.searchsorted(edges, x), jnp.digitize(x, edges))
        y: F[S, N] = choose(
            x - edges[jnp.clip(bucket, 0, BINS - 1)], bucket.astype(jnp.F) * payload
        )
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
            ("log_sum", "jnp.logaddexp", "-jnp.inf"),
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
        terms: F[S] = choose((left - right) ** 2, 0.5 * jnp.square(left - right))
    elif KIND == "absolute":
        terms: F[S] = jnp.abs(left - right)
    elif KIND == "chebyshev":
        return jnp.max(jnp.abs(left - right), axis=A)
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
        terms: F[S] = choose(jax.nn.relu(1.0 - left * right), jnp.maximum(0.0, 1.0 - left * right))
    if chance(0.3):
        return choose(jnp.sum(terms), jnp.mean(terms), terms, jnp.mean(terms, axis=-1))
    total: F[S[1:]] = choose(
        jnp.mean(terms, axis=0),
        jnp.sum(terms, axis=0),
        jnp.sqrt(jnp.sum(terms, axis=0) + 1e-2),
        jnp.max(terms, axis=0),
        jnp.sqrt(jnp.abs(jnp.mean(terms, axis=0)) + 1e-3),
    )
    return more(total, most=1)


@template("normalisation", "reductions")
def normalize_NAME(x: F[S], scale: F[S[-1:]], shift: F[S[-1:]]):
    """Normalise NAME."""
    S, NAME = shape(1, 4, 24), choose("rows", "features", "scores")
    KIND = choose("one", "one", "groups", "affine", "two", "clipped")
    if KIND == "groups":
        flat: F[S[0], 2] = x.reshape(S[0], -1)
        y: F[S[0], 2] = normalised(flat)
        return more(y, most=1)
    source: F[S] = prepared(x)
    y: F[S] = normalised(source)
    if KIND == "affine":
        y: F[S] = choose(y * scale + shift, scale * y, y * (1.0 + scale), y + shift)
    elif KIND == "clipped":
        y: F[S] = choose(jnp.clip(y, -1.0, 1.0), jnp.maximum(y, 0.0), 0.5 * (1.0 + lax.erf(y)))
    elif KIND == "two":
        y: F[S] = choose(y - jnp.mean(y, axis=-1, keepdims=True), jnp.square(y), y * x)
    return more(y, most=1)


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
        return choose((values, place), (place, values), values * place.astype(jnp.F))
    return place


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
        counts = jnp.bincount(nearest, length=K).astype(jnp.W)
        y: W[K] = choose(counts * jnp.mean(distances, axis=0), counts - jnp.sum(centers, axis=-1))
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
    scaled: F[S] = choose(mapped(x, 1), x)
    y: F[S] = jnp.where(valid, scaled, choose(0.0, 0.5 * x, jnp.zeros_like(x), -1.0))
    return more(y, most=1)
