"""Templates of linear algebra."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("einsum", "linear algebra", 3)
def einsum_NAME(x: D[DIMS[0]], y: D[DIMS[1]], z: D[DIMS[2]]):
    """Contract arrays as EQUATION."""
    D = choose(F, F, F, F, CPX)
    EQUATION, NAME = choose(
        ("bij,bjk->bik", "batch"),
        ("ij,kj->ik", "transposed"),
        ("bij,bij->b", "inner"),
        ("bthd,bshd->bhts", "heads"),
        ("bi,ijk,bk->bj", "trilinear"),
        ("bii->b", "trace"),
        ("ij,jk,kl->il", "chain"),
        ("abc,abe->ce", "gram"),
    )
    TERMS = EQUATION.split("->")[0].split(",")
    SIZES = dict([(LETTER, size(2, 8)) for LETTER in "abcdehijklst"])
    DIMS = [tuple([SIZES[LETTER] for LETTER in TERM]) for TERM in [*TERMS, "", ""]]
    COUNT, RESULT = len(TERMS), DIMS[0][: len(EQUATION.split("->")[1])]
    RANK = tuple([1 for LETTER in EQUATION.split("->")[1]])
    left: D[DIMS[0]] = prepared(x)
    if COUNT == 1:
        product: D[RANK] = jnp.einsum("EQUATION", left)
    elif COUNT == 2:
        product: D[RANK] = jnp.einsum("EQUATION", left, y)
    else:
        product: D[RANK] = jnp.einsum("EQUATION", left, y, z)
    return more(product, most=2)


@template("factorisation", "linear algebra", 9)
def KIND_of_NAME(matrix: W[BATCH, N, N, "definite"], design: W[BATCH, M, N]):
    """Factorise a matrix with KIND."""
    BATCH, N = choose((), (), shape(1, 2, 4)), size(2, 10)
    M, NAME = N + between(0, 3), choose("covariance", "matrix", "basis")
    KIND = choose(*"cholesky qr svd svd eigh eigh lu lu lu inv".split())
    x = choose(matrix, matrix, matrix + choose(0.1, 1e-3) * jnp.eye(N, dtype=jnp.W))
    z = choose(design, design, design - jnp.mean(design, axis=-2, keepdims=True))
    if KIND == "inv":
        y: W[BATCH, N, N] = jnp.linalg.inv(x)
    elif KIND == "cholesky":
        factor = choose(jnp.linalg.cholesky(x), lax.linalg.cholesky(x))
        y: W[BATCH, N, N] = choose(factor, jnp.swapaxes(factor, -1, -2), factor @ factor)
    elif KIND == "qr":
        q, r = jnp.linalg.qr(z)
        y: W[BATCH, N, N] = choose(jnp.abs(r), jnp.abs(q @ r))
    elif KIND == "svd":
        u, s, vt = jnp.linalg.svd(z, full_matrices=False)
        RANK = between(1, N - 1)
        y: W[BATCH, N, N] = (u[..., :RANK] * s[..., None, :RANK]) @ vt[..., :RANK, :]
    elif KIND == "eigh":
        values, vectors = jnp.linalg.eigh(x)
        weights = choose(jnp.sqrt, jnp.log, jnp.reciprocal)(values)
        y: W[BATCH, N, N] = (vectors * weights[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)
    else:
        packed, pivots, permutation = lax.linalg.lu(x)
        order = lax.linalg.lu_pivots_to_permutation(pivots, N)
        upper = jnp.triu(packed)
        places = choose(order, order + permutation).astype(jnp.W)[..., None]
        y: W[BATCH, N, N] = choose(upper * (1.0 + places), packed + places)
    return more(y, style="quantity")


@template("solving", "linear algebra", 12)
def solve_with_KIND(
    matrix: W[N, N, RULE],
    b: W[N, K],
    below_it: W[N, "unit"],
    above_it: W[N, "unit"],
    diagonal: W[N, "positive"],
):
    """Solve a linear system with KIND."""
    N, K = size(2, 10), size(2, 6)
    KIND = choose(*"solve cho_solve triangular tridiagonal tridiagonal custom custom".split())
    RULE = "triangular" if KIND == "triangular" else "definite"
    if KIND == "tridiagonal":
        # The first of the lower and the last of the upper elements are ignored.
        stiff = diagonal + 2.0
        return lax.linalg.tridiagonal_solve(below_it, stiff, above_it, b)
    target: W[N, K] = prepared(b)

    def matvec(v):
        return matrix @ v

    def solve_with(_, v):
        return jnp.linalg.solve(matrix, v)

    if KIND == "solve":
        y: W[N, K] = jnp.linalg.solve(matrix, target)
    elif KIND == "triangular":
        y: W[N, K] = jax.scipy.linalg.solve_triangular(matrix, target, lower=True)
    elif KIND == "cho_solve":
        factor = jnp.linalg.cholesky(matrix)
        y: W[N, K] = jax.scipy.linalg.cho_solve((factor, True), target)
    else:
        y: W[N, K] = lax.custom_linear_solve(matvec, target, solve_with, symmetric=True)
    z: W[N, K] = choose(y, y, y - target, matrix @ y - b, y - jnp.mean(y, axis=0))
    return more(z, most=1)


@template("rare decompositions", "linear algebra", 28)
def KIND_features(x: W[N, N, "definite"], update: W[N], rows: W[N, M]):
    """Compute KIND features of a matrix."""
    N, M = size(3, 8), size(2, 6)
    KIND = choose(
        *"schur hessenberg tridiagonal householder ormqr eig cholesky_update".split(),
        *"symmetric_product".split(),
    )
    small: W[N, N] = choose(x, x / N, x + 0.1 * jnp.eye(N, dtype=jnp.W))
    if KIND == "eig":
        y: W[N] = jnp.sort(jnp.abs(jnp.linalg.eigvals(small + jnp.triu(small, k=1))))
        return more(y, most=1, style="quantity")
    elif KIND == "schur":
        triangle, basis = lax.linalg.schur(small)
        y: W[N, N] = choose(jnp.abs(triangle), jnp.square(basis) @ x)
    elif KIND == "hessenberg":
        packed, taus = lax.linalg.hessenberg(small)
        y: W[N, N] = jnp.abs(packed[:-1]) + jnp.abs(taus)[:, None]
    elif KIND == "tridiagonal":
        packed, main, off_diagonal, taus = lax.linalg.tridiagonal(small)
        y: W[N] = jnp.abs(main[1:]) + jnp.abs(off_diagonal) * choose(1.0, jnp.abs(taus))
        return more(y, most=1, style="quantity")
    elif KIND == "cholesky_update":
        factor = jnp.linalg.cholesky(small).T
        y: W[N, N] = lax.linalg.cholesky_update(factor, update)
    elif KIND == "symmetric_product":
        y: W[N, N] = jnp.tril(
            lax.linalg.symmetric_product(rows, small, alpha=choose(0.5, 1.0), beta=choose(2.0, 1.0))
        )
    else:
        packed, taus = jnp.linalg.qr(small, mode="raw")
        reflectors = packed.T
        if KIND == "householder":
            q = lax.linalg.householder_product(reflectors, taus)
            y: W[N, N] = choose(jnp.abs(q.T @ x), jnp.abs(q) * x)
        else:
            y: W[N, N] = jnp.abs(lax.linalg.ormqr(reflectors, taus, jnp.ones_like(reflectors)))
    return more(y, most=1, style="quantity")


@template("fourier", "linear algebra", 3)
def spectrum_KIND(x: W[BATCH, N], gains: W[N // 2 + 1], kernel: W[N]):
    """Work on a signal in the frequency domain."""
    N, BATCH = choose(4, 6, 8, 10, 12, 16, 32), shape(0, 2, 6)
    KIND = choose("filter", "power", "convolution")
    signal: W[BATCH, N] = prepared(x)
    if KIND == "power":
        modes = jnp.fft.rfft(signal, axis=-1)
        y: W[BATCH, N] = choose(jnp.log1p(jnp.abs(modes)), jnp.square(jnp.abs(modes)) / N)
    elif KIND == "filter":
        filtered = jnp.fft.rfft(signal) * choose(gains, jax.nn.sigmoid(gains))
        y: W[BATCH, N] = jnp.fft.irfft(filtered, n=N)
    else:
        product = jnp.fft.fft(signal) * jnp.fft.fft(kernel)
        y: W[BATCH, N] = jnp.real(jnp.fft.ifft(product))
    return more(y, most=2)
