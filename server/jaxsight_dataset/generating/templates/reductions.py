"""Templates of reductions, cumulative functions, sorting and windows."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

STATISTICS = {
    ("covariance", "Compute covariances"): """
        centered = source - jnp.mean(source, axis=A, keepdims=True)
        choose(
            jnp.mean(centered * (y - jnp.mean(y, axis=A, keepdims=True)), axis=A),
            jnp.mean(source * y, axis=A) - jnp.mean(source, axis=A) * jnp.mean(y, axis=A),
        )
        """,
    ("correlation", "Compute correlations"): """
        left = source - jnp.mean(source, axis=A, keepdims=True)
        right = y - jnp.mean(y, axis=A, keepdims=True)
        scale = jnp.sqrt(jnp.sum(left**2, axis=A) * jnp.sum(right**2, axis=A) + EPSILON)
        jnp.sum(left * right, axis=A) / scale
        """,
    ("weighted_mean", "Compute weighted means"): """
        choose(
            jnp.average(source, axis=A, weights=weights),
            jnp.tensordot(source, weights / jnp.sum(weights), axes=(A, 0)),
        )
        """,
    ("rmse", "Compute errors of predictions"): """
        errors = choose(source - y, y - source)
        choose(
            jnp.sqrt(jnp.mean(errors**2, axis=A) + EPSILON), jnp.mean(jnp.abs(errors), axis=A),
            1.0 - jnp.sum(errors**2, axis=A) / (jnp.sum(y**2, axis=A) + EPSILON),
        )
        """,
}
"""Names and titles of statistics along an axis, with their lines."""


@template("statistics", "reductions", 3)
def NAME(x: F[S], y: F[S], weights: F[S[A], "positive"]):
    """TITLE."""
    S, EPSILON = shape(1, 5, 32), choose(1e-3, 1e-2)
    A = between(0, len(S) - 1)
    NAME, TITLE = choose(*STATISTICS, ("two_moments", "Compute two statistics"))
    source: F[S] = choose(x, x, prepared(x))
    if NAME == "two_moments":
        first: F[S[1:]] = reduced(source, axis=A)
        second: F[S[1:]] = reduced(x, axis=A)
        return choose((first, second), jnp.stack([first, second]), first * second)
    LINES = STATISTICS.get((NAME, TITLE))
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
    else:
        y: D[S[1:]] = lax.reduce_KIND(source, axes=(A,))
    if chance(0.3):
        z: F[S[1:]] = number(y)
        return more(z, most=3)
    return more(y, most=3)


@template("cumulative", "reductions", 4)
def running_NAME(x: D[S]):
    """Follow a NAME as it goes on."""
    D, S = choose(F, F, INT), shape(1, 4, 24)
    NAME, KIND = choose("series", "path", "curve"), choose("cumsum", "cumprod", "cummax", "cummin")
    source: D[S] = prepared(x)
    if D == F:
        y: F[S] = scanned(source)
        return more(y, most=1)
    z: INT[S] = choose(
        lax.KIND(source, axis=0), lax.KIND(source, axis=0, reverse=True), jnp.sort(source, axis=0)
    )
    if chance(0.3):
        levels: F[S] = number(z)
        return more(levels, most=3)
    return more(z, x, most=3)


@template("sorting", "reductions")
def order_by_KIND(x: F[S, N], payload: F[S, N]):
    """Order F values along an axis."""
    S, N = shape(0, 2, 12), size(2, 32)
    K, KIND = min(N, between(1, 5)), choose("value", "top", "key", "rank", "bucket")
    if KIND == "value":
        y: F[S, N] = choose(jnp.sort(x, axis=0, descending=True), jnp.sort(x, axis=-1))
    elif KIND == "top":
        best, where = choose(lax.top_k(x, K), lax.top_k(x, K), lax.approx_max_k(x, K))
        if chance(0.5):
            return best, where
        y: F[S, K] = choose(best - jnp.mean(x, axis=-1, keepdims=True), jax.nn.softmax(best))
    elif KIND == "key":
        ordered, carried = lax.sort((x, payload), num_keys=1)
        y: F[S, N] = choose(carried, jnp.cumsum(carried, axis=-1), carried * ordered)
    elif KIND == "rank":
        ranks = jnp.argsort(jnp.argsort(x, axis=-1), axis=-1).astype(jnp.F)
        y: F[S, N] = choose(x * ranks, ranks - 0.5 * N + x, payload * ranks)
    else:
        edges = jnp.linspace(-3.0, 3.0, 8, dtype=jnp.F)
        bucket = choose(jnp.searchsorted(edges, x), jnp.digitize(x, edges))
        y: F[S, N] = choose(x - edges[jnp.clip(bucket, 0, 7)], bucket.astype(jnp.F) * payload)
    return more(y, most=3)


@template("windows", "reductions", 4)
def NAME_of_windows(x: W[S]):
    """Reduce windows of an array with FUNCTION."""
    S, PADDING = shape(1, 3, 16), choose("SAME", "VALID")
    NAME, FUNCTION, START = choose(
        ("sum", "lax.add", "0.0"),
        ("maximum", "lax.max", "-jnp.inf"),
        ("minimum", "lax.min", "jnp.inf"),
        ("product", "lax.mul", "jnp.ones((), x.dtype)"),
        ("log_sum", "jnp.logaddexp", "jnp.full((), -jnp.inf, x.dtype)"),
        ("norm", "jnp.hypot", "jnp.zeros((), x.dtype)"),
    )
    WINDOW = (2, *[min(N, between(1, 3)) for N in S[1:]])
    STRIDES = tuple([choose(1, 1, 2) for N in S])
    source: W[S] = choose(prepared(x), jnp.tanh(x)) if NAME in ("sum", "maximum") else jnp.tanh(x)
    start = START
    y: W[S] = lax.reduce_window(source, start, FUNCTION, WINDOW, STRIDES, "PADDING")
    return more(y)


@template("norms and distances", "reductions")
def KIND_NAME(x: F[S], y: F[S]):
    """Compute a KIND NAME."""
    S, NAME = shape(1, 3, 32), choose("loss", "distance", "divergence", "error")
    KIND = choose("squared", "absolute", "cosine", "huber", "kl", "log_cosh", "hinge")
    left: F[S] = prepared(x)
    right: F[S] = prepared(y)
    gap = left - right
    if KIND == "cosine":
        norms = jnp.linalg.norm(left) * jnp.linalg.norm(right) + 1e-1
        terms: F[S] = left * right / norms
    elif KIND == "kl":
        log_p = jax.nn.log_softmax(left, axis=-1)
        log_q = jax.nn.log_softmax(right, axis=-1)
        terms: F[S] = jnp.exp(log_p) * (log_p - log_q)
    else:
        TERMS = {
            "squared": "0.5 * jnp.square(gap)",
            "absolute": "jnp.abs(gap)",
            "huber": "jnp.where(jnp.abs(gap) < 1.0, 0.5 * gap**2, jnp.abs(gap) - 0.5)",
            "log_cosh": "jnp.log(jnp.cosh(jnp.clip(gap, -4.0, 4.0)))",
            "hinge": "jax.nn.relu(1.0 - left * right)",
        }[KIND]
        terms: F[S] = TERMS
    total: F[S[1:]] = choose(
        jnp.mean(terms, axis=0),
        jnp.sqrt(jnp.sum(terms**2, axis=0) + 1e-2),
        jnp.max(terms, axis=0),
    )
    return more(total, most=1)


@template("normalisation", "reductions")
def normalize_NAME(x: F[S], scale: F[S[-1:]], shift: F[S[-1:]]):
    """Normalise NAME."""
    S, NAME = shape(1, 4, 24), choose("rows", "features", "scores")
    source: F[S] = prepared(x)
    y: F[S] = normalised(source)
    z: F[S] = choose(y, y * scale + shift, y * (1.0 + scale), jnp.clip(y, -1.0, 1.0), y * x)
    return more(z, most=1)


@template("selection", "reductions", 4)
def KIND_along_axis(x: D[S]):
    """Find KIND along axis A."""
    D, S = choose(F, F, INT), shape(1, 4, 24)
    A, KIND = between(0, len(S) - 1), choose("argmax", "argmin", "count", "matches")
    if KIND in ("argmax", "argmin"):
        place: I64[S[1:]] = choose(jnp.KIND(x, axis=A), lax.KIND(x, A, jnp.int32))
    else:
        mask = compared(x)
        place: I64[S[1:]] = choose(jnp.sum, jnp.any, jnp.count_nonzero, jnp.all)(mask, axis=A)
    if D == F and chance(0.7):
        values: F[S[1:]] = reduced(x, axis=A)
        return choose((values, place), values * place.astype(jnp.F))
    return place
