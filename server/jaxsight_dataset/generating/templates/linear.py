"""Templates of linear algebra."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("matrix products", "linear algebra", 3)
def project_NAME(x: F[BATCH, N], first: F[N, M], second: F[M, K]):
    """Multiply with matrices in turn."""
    BATCH, N, M, K = shape(0, 3, 8), size(2, 32), size(2, 32), size(2, 32)
    NAME = choose("features", "vectors", "rows")
    source: F[BATCH, N] = choose(x, x, normalised(x), x - jnp.mean(x, axis=-1, keepdims=True))
    hidden: F[BATCH, M] = choose(
        source @ first / sqrt(N),
        jnp.dot(source, first) / sqrt(N),
        jnp.matmul(source, first) / N,
    )
    if chance(0.4):
        hidden: F[BATCH, M] = activated(hidden)
    if chance(0.5):
        hidden: F[BATCH, K] = choose(
            hidden @ second / sqrt(M), hidden @ second, jnp.dot(hidden, second)
        )
    return more(hidden, most=2, style="layer")


@template("einsum", "linear algebra", 3)
def einsum_NAME(x: D[DIMS[0]], y: D[DIMS[1]], z: D[DIMS[2]]):
    """Contract arrays as EQUATION."""
    D, EQUATION, NAME = (
        choose(F, F, F, F, CPX),
        *choose(
            *(("bij,bjk->bik", "batch"), ("ij,kj->ik", "transposed"), ("bi,bj->bij", "outer")),
            *(("bij,bij->b", "inner"), ("ij,ij->", "full"), ("bthd,bshd->bhts", "heads")),
            *(("bhts,bshd->bthd", "mix"), ("i,ij,j->", "bilinear"), ("bi,ijk,bk->bj", "trilinear")),
            *(("ii->i", "diagonal"), ("bii->b", "trace"), ("ij,jk,kl->il", "chain")),
            *(("abc,ce->abe", "contraction"), ("abc,abe->ce", "gram")),
        ),
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


@template("dot_general", "linear algebra", 4)
def dot_KIND(x: D[LEFT], y: D[RIGHT]):
    """Multiply arrays along explicit dimension numbers."""
    B, N, M, K = size(2, 6), size(2, 12), size(2, 12), size(2, 12)
    KIND = choose("scaled", "plain", "batched", "vectors", "tensordot", "precise", "preferred")
    D = "bfloat16" if KIND == "scaled" else F
    LEFT = (B, N, K) if KIND in ("batched", "vectors") else (N, K)
    RIGHT = {"batched": (B, K, M), "vectors": (B, K)}.get(KIND, (K, M))
    numbers = (((2,), (1,)), ((0,), (0,))) if len(LEFT) == 3 else (((1,), (0,)), ((), ()))
    left: D[LEFT] = prepared(x)
    right: D[RIGHT] = prepared(y)
    WIDE = "float64" if D == "float64" else "float32"
    if KIND == "tensordot":
        z: D[N, M] = jnp.tensordot(left, right, axes=1)
    elif KIND == "scaled":
        z: WIDE[N, M] = lax.scaled_dot(left, right, preferred_element_type=jnp.float32)
    elif KIND == "precise":
        z: D[N, M] = lax.dot_general(left, right, numbers, precision=lax.Precision.HIGHEST)
    elif KIND == "preferred":
        z: WIDE[N, M] = lax.dot_general(left, right, numbers, preferred_element_type=jnp.WIDE)
    else:
        z: D[RIGHT] = lax.dot_general(left, right, numbers)
    return more(z)


@template("factorisation", "linear algebra", 9)
def KIND_of_NAME(matrix: W[BATCH, N, N, "definite"], design: W[BATCH, M, N]):
    """Factorise a matrix with KIND."""
    BATCH, N = choose((), (), shape(1, 2, 4)), size(2, 10)
    M, NAME = N + between(0, 3), choose("covariance", "matrix", "basis")
    KIND = choose(
        *"cholesky qr svd svd eigh eigh eigh lu lu lu svdvals eigvalsh slogdet inv pinv".split()
    )
    x = choose(matrix, matrix, matrix + choose(0.1, 1e-3) * jnp.eye(N, dtype=jnp.W))
    z = choose(design, design, design - jnp.mean(design, axis=-2, keepdims=True))
    if KIND == "svdvals":
        y: W[BATCH, N] = jnp.linalg.svd(z, compute_uv=False)
    elif KIND == "eigvalsh":
        y: W[BATCH, N] = jnp.linalg.eigvalsh(x)
    elif KIND == "slogdet":
        sign, log_size = jnp.linalg.slogdet(x)
        y: W[BATCH] = sign * log_size
    elif KIND in ("inv", "pinv"):
        y: W[BATCH, N, N] = jnp.linalg.KIND(x)
    elif KIND == "cholesky":
        factor = choose(jnp.linalg.cholesky(x), lax.linalg.cholesky(x))
        if chance(0.5):
            y: W[BATCH, N] = jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1))
        else:
            y: W[BATCH, N, N] = choose(factor, jnp.swapaxes(factor, -1, -2), factor @ factor)
    elif KIND == "qr":
        q, r = jnp.linalg.qr(z)
        y: W[BATCH, N, N] = choose(
            jnp.abs(r),
            jnp.log(jnp.abs(jnp.diagonal(r, axis1=-2, axis2=-1)))[..., None],
            jnp.abs(q @ r),
        )
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
        y: W[BATCH, N, N] = choose(
            upper * (1.0 + places), packed + places, jnp.tril(packed, -1) * places
        )
    return more(y, style="quantity")


@template("solving", "linear algebra", 12)
def solve_with_KIND(
    matrix: W[N, N, RULE],
    b: W[B],
    below_it: W[N, "unit"],
    above_it: W[N, "unit"],
    diagonal: W[N, "positive"],
):
    """Solve a linear system with KIND."""
    N, K = size(2, 10), size(2, 6)
    KIND = choose(
        *"solve cho_solve triangular lstsq cg tridiagonal tridiagonal tridiagonal custom".split(),
        *"custom lax".split(),
    )
    RULE = "triangular" if KIND in ("triangular", "lax") else "definite"
    B = (N,) if KIND == "cg" else (N, K)
    if KIND == "tridiagonal":
        # The first of the lower and the last of the upper elements are ignored.
        stiff = diagonal + 2.0
        return lax.linalg.tridiagonal_solve(below_it, stiff, above_it, b)
    target: W[B] = prepared(b)

    def matvec(v):
        return matrix @ v

    def solve_with(_, v):
        return jnp.linalg.solve(matrix, v)

    if KIND == "solve":
        y: W[B] = jnp.linalg.solve(matrix, target)
    elif KIND == "triangular":
        y: W[B] = jax.scipy.linalg.solve_triangular(matrix, target, lower=True)
    elif KIND == "lax":
        y: W[B] = lax.linalg.triangular_solve(matrix, target, left_side=True, lower=True)
    elif KIND == "lstsq":
        y: W[B] = jnp.linalg.lstsq(matrix, target)[0]
    elif KIND == "cg":
        label("own-derivative")  # that of the solution, which so few iterations do not reach
        y: W[B] = jax.scipy.sparse.linalg.cg(matvec, target, maxiter=between(2, 6))[0]
    elif KIND == "cho_solve":
        factor = jnp.linalg.cholesky(matrix)
        y: W[B] = jax.scipy.linalg.cho_solve((factor, True), target)
    else:
        y: W[B] = lax.custom_linear_solve(matvec, target, solve_with, symmetric=True)
    z: W[B] = choose(y, y, y - target, matrix @ y - b, y - jnp.mean(y, axis=0))
    return more(z, most=1)


@template("matrix functions", "linear algebra", 3)
def KIND_of_matrix(x: W[N, N, "definite"], arm: W[N, 3], axle: W[N, 3]):
    """Compute KIND of a matrix."""
    N = size(3, 8)
    KIND = choose(
        *"expm det matrix_power kron norm cov trace cross multi_dot vander symmetric_part".split(),
        *"block_diag toeplitz".split(),
    )
    small: W[N, N] = choose(x / N, 0.5 * x, x)
    if KIND == "det":
        return choose(jnp.linalg.det(x), jnp.linalg.slogdet(x)[1], jnp.log(jnp.linalg.det(x)))
    if KIND == "cov":
        y: W[N, N] = choose(jnp.cov(x), jnp.corrcoef(x), jnp.cov(x, rowvar=False))
    elif KIND == "norm":
        y: W[()] = jnp.linalg.norm(small, ord=choose(2, 1, "nuc"))
    elif KIND == "trace":
        y: W[()] = jnp.trace(small @ small)
    elif KIND == "expm":
        y: W[N, N] = choose(jax.scipy.linalg.expm(-small), jax.scipy.linalg.expm(x / N))
    elif KIND == "matrix_power":
        y: W[N, N] = jnp.linalg.matrix_power(small, between(2, 4))
    elif KIND == "kron":
        y: W[N, N] = jnp.kron(small, jnp.eye(2, dtype=jnp.W))
    elif KIND == "cross":
        y: W[N, 3] = small @ jnp.cross(arm, axle)
    elif KIND == "multi_dot":
        y: W[N, N] = jnp.linalg.multi_dot(
            choose([arm.T, x, axle], [arm, axle.T, x], [x, arm, arm.T])
        )
        return y
    elif KIND == "vander":
        y: W[N, 3] = jnp.vander(jnp.diagonal(small), 3)
    elif KIND == "symmetric_part":
        y: W[N, N] = jnp.triu(small) + jnp.tril(small, k=-1).T
    elif KIND == "block_diag":
        y: W[N, N] = jax.scipy.linalg.block_diag(small, choose(arm, x.T, jnp.eye(2, dtype=jnp.W)))
        return more(y, most=1)
    else:
        y: W[N, N] = jax.scipy.linalg.toeplitz(choose(x[0], jnp.diagonal(x)))
    if KIND in ("norm", "trace", "cross", "vander", "kron"):
        return more(y, most=1)
    return more(y, most=1, style="square")


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
        y: W[N, N] = choose(jnp.abs(triangle), jnp.abs(basis @ triangle), jnp.square(basis) @ x)
    elif KIND == "hessenberg":
        packed, taus = lax.linalg.hessenberg(small)
        y: W[N, N] = choose(
            jnp.abs(packed[:-1]) + jnp.abs(taus)[:, None],
            jnp.abs(packed[:-1]) * jnp.abs(taus)[:, None],
            jnp.abs(jnp.triu(packed, k=-1)),
        )
    elif KIND == "tridiagonal":
        packed, main, off_diagonal, taus = lax.linalg.tridiagonal(small)
        y: W[N] = choose(
            jnp.abs(main[1:]) + jnp.abs(off_diagonal),
            jnp.abs(off_diagonal) * jnp.abs(taus),
            jnp.square(main[:-1]) + 2.0 * jnp.square(off_diagonal),
        )
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
            y: W[N, N] = choose(jnp.abs(q.T @ x), jnp.square(q) @ x, jnp.abs(q) * x)
        else:
            y: W[N, N] = jnp.abs(lax.linalg.ormqr(reflectors, taus, jnp.ones_like(reflectors)))
    return more(y, most=1, style="quantity")


@template("fourier", "linear algebra", 3)
def spectrum_KIND(x: W[BATCH, N], gains: W[N // 2 + 1], kernel: W[N]):
    """Work on a signal in the frequency domain."""
    N, BATCH = choose(4, 6, 8, 10, 12, 16, 32), shape(0, 2, 6)
    C = "complex128" if W == "float64" else "complex64"
    KIND = choose("filter", "power", "convolution", "shift", "inverse", "plane")
    signal: W[BATCH, N] = prepared(x)
    if KIND == "power" or (KIND == "plane" and not BATCH):
        modes = jnp.fft.rfft(signal, axis=-1)
        y: W[BATCH, N] = choose(
            jnp.log1p(jnp.abs(modes)),
            jnp.square(jnp.abs(modes)) / N,
            jnp.abs(modes),
            10.0 * jnp.log10(jnp.abs(modes) ** 2 + 1e-2),
        )
    elif KIND == "filter":
        filtered = jnp.fft.rfft(signal) * choose(
            gains, jax.nn.sigmoid(gains), (jnp.abs(gains) < 1.0)
        )
        y: W[BATCH, N] = jnp.fft.irfft(filtered, n=N)
    elif KIND == "convolution":
        product = jnp.fft.fft(signal) * jnp.fft.fft(kernel)
        y: W[BATCH, N] = jnp.real(jnp.fft.ifft(product))
    elif KIND == "shift":
        modes = jnp.fft.fftshift(jnp.fft.fft(signal), axes=-1)
        y: W[BATCH, N] = choose(jnp.real(modes) + jnp.imag(modes), jnp.abs(modes), jnp.imag(modes))
    elif KIND == "inverse":
        phases = jnp.exp(2j * jnp.pi * kernel).astype(jnp.C)
        y: W[BATCH, N] = jnp.abs(jnp.fft.ifft(signal * phases))
    else:
        y: W[BATCH, N] = choose(
            jnp.abs(jnp.fft.fft2(signal)), jnp.log1p(jnp.abs(jnp.fft.fft2(signal)))
        )
    return more(y, most=2)


@template("eigenvalues of general matrices", "linear algebra", 2)
def eigenvalue_KIND(x: W[BATCH, N, N, "definite"], coupling: W[BATCH, N, N, "unit"]):
    """Compute the KIND of a system's eigenvalues."""
    BATCH, N = choose((), (), (), shape(1, 1, 4)), size(2, 8)
    KIND = choose("radius", "growth", "powers", "gap", "participation", "trace", "stability")
    system = x + choose(0.1, 0.2, 0.3, 0.2j) * coupling
    if KIND == "participation":
        values, vectors = jnp.linalg.eig(system)
        shares = choose(jnp.abs(vectors), jnp.square(jnp.abs(vectors)))
        y: W[BATCH, N] = jnp.sum(shares * jnp.abs(values)[..., None, :], axis=-1)
        return more(y, style="quantity")
    spectrum = jnp.linalg.eigvals(system)
    if KIND == "radius":
        y: W[BATCH] = jnp.max(jnp.abs(spectrum), axis=-1)
    elif KIND == "growth":
        y: W[BATCH, N] = jnp.sort(jnp.real(spectrum), axis=-1)
    elif KIND == "powers":
        y: W[BATCH] = jnp.real(jnp.mean(spectrum**2, axis=-1))
    elif KIND == "gap":
        y: W[BATCH] = jnp.ptp(jnp.abs(spectrum), axis=-1)
    elif KIND == "trace":
        y: W[BATCH] = choose(
            jnp.real(jnp.sum(jnp.exp(-spectrum), axis=-1)),
            jnp.real(jnp.sum(1.0 / spectrum, axis=-1)),
        )
    else:
        y: W[BATCH, N] = jnp.sort(jnp.log(jnp.abs(spectrum)), axis=-1)
    return more(y, most=2, style="quantity")
