"""Templates of linear algebra."""

from __future__ import annotations

import math

from jaxsight.dataset.generating.elementwise import chain
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, linear, prepare
from jaxsight.dataset.generating.types import COMPLEX, Value, complex_dtype, jnp_dtype, real_dtype
from jaxsight.dataset.generating.vocabulary import WEIGHTS
from jaxsight.dataset.generating.writer import Writer


def batched(w: Writer, low: int = 2, high: int = 10) -> tuple[tuple[int, ...], int]:
    """Return the shape of a batch, mostly none, and the size of square matrices."""
    batch = w.shape(1, 2, 4) if w.chance(0.3) else ()
    return batch, w.size(low, high)


@template("matrix products", "linear algebra", 3)
def products(w: Writer) -> None:
    """Write a chain of products with matrices and functions between them."""
    dtype = w.floating()
    width = w.size(2, 32)
    x = prepare(w, w.array("x inputs features", dtype, (*w.shape(0, 3, 8), width)), 1)
    count = w.between(1, 3)
    for _ in range(count):
        outer = w.size(2, 32)
        weights = w.array(WEIGHTS, dtype, (x.shape[-1], outer))
        x = linear(w, x, weights)
        if w.chance(0.6):
            x = w.let("mapped activated", calm(w, chain(w, x, w.between(1, 2))))
    w.words += ["project", w.pick(("features", "vectors", "rows")), f"{count}_times"]
    w.words = w.words if count > 1 else w.words[:2]
    w.title = f"Multiply with {count} matri{'x' if count == 1 else 'ces'} in turn"
    leave(w, x, [], 4)


EINSUMS = (
    ("bij,bjk->bik", "batch"),
    ("ij,kj->ik", "transposed"),
    ("bi,bj->bij", "outer"),
    ("bij,bij->b", "inner"),
    ("ij,ij->", "full"),
    ("bthd,bshd->bhts", "heads"),
    ("bhts,bshd->bthd", "mix"),
    ("i,ij,j->", "bilinear"),
    ("bi,ijk,bk->bj", "trilinear"),
    ("ii->i", "diagonal"),
    ("bii->b", "trace"),
    ("ij,jk,kl->il", "chain"),
    ("abc,ce->abe", "contract"),
    ("abc,abe->ce", "gram"),
)


@template("einsum", "linear algebra", 3)
def einsum(w: Writer) -> None:
    """Write an Einstein summation."""
    dtype = w.floating() if w.chance(0.8) else w.dtype(*COMPLEX)
    spelled, name = w.pick(EINSUMS)
    left, right = spelled.split("->")
    sizes = {letter: w.size(2, 8) for letter in dict.fromkeys(left) if letter != ","}
    names = ["x", "y", "z"] if w.chance(0.5) else ["left", "kernel", "right"]
    values = []
    for name_, term in zip(names, left.split(","), strict=False):
        value = w.array(name_, dtype, tuple(sizes[letter] for letter in term))
        values.append(prepare(w, value, 1))
    contracted = math.prod(sizes[letter] for letter in sizes if letter not in right)
    bound = 2.5 * math.sqrt(contracted) * math.prod(max(1.0, x.bound / 2) for x in values)
    text = f'jnp.einsum("{spelled}", {", ".join(value.text for value in values)})'
    shape = tuple(sizes[letter] for letter in right)
    x = w.let("contracted product", w.make(text, *values, shape=shape, low=-bound, high=bound))
    w.words += ["einsum", name, w.pick(("product", "contraction", "sum"))]
    w.title = f"Contract {len(values)} array{'s' if len(values) > 1 else ''} as {spelled}"
    leave(w, x, [], 4)


@template("dot_general", "linear algebra", 4)
def dot_general(w: Writer) -> None:
    """Write products with `lax.dot_general`."""
    dtype = w.floating()
    shape: tuple[int, ...]
    batch, inner = w.size(2, 6), w.size(2, 12)
    m, n = w.size(2, 12), w.size(2, 12)
    kind = w.pick(("plain", "batched", "two", "tensordot", "precision", "preferred"))
    if w.chance(0.35) and "bfloat16" in w.spec.dtypes:
        kind, dtype = "scaled", "bfloat16"
    if kind in ("batched", "two"):
        x, y = (
            w.array("x queries", dtype, (batch, m, inner)),
            w.array("y memory", dtype, (batch, inner, n)),
        )
        axes, shape = "(((2,), (1,)), ((0,), (0,)))", (batch, m, n)
        if kind == "two":
            del w.parameters[y.text]
            y = w.array("y memory", dtype, (batch, inner))
            axes, shape = "(((2,), (1,)), ((0,), (0,)))", (batch, m)
    else:
        x, y = w.array("x rows", dtype, (m, inner)), w.array("y columns", dtype, (inner, n))
        axes, shape = "(((1,), (0,)), ((), ()))", (m, n)
    x, y = prepare(w, x, 1), prepare(w, y, 1)
    result = dtype
    if kind == "tensordot":
        text = f"jnp.tensordot({x}, {y}, axes=1)"
    elif kind == "scaled":
        w.blocked(x, y)
        text, result = f"lax.scaled_dot({x}, {y}, preferred_element_type=jnp.float32)", "float32"
    else:
        numbers = w.let("dimension_numbers", Value(axes, "", ()))
        text = f"lax.dot_general({x}, {y}, {numbers})"
        if kind == "precision":
            text = f"{text[:-1]}, precision=lax.Precision.HIGHEST)"
        if kind == "preferred":
            result = "float64" if dtype == "float64" else "float32"
            text = f"{text[:-1]}, preferred_element_type={jnp_dtype(result)})"
    bound = 2.5 * math.sqrt(inner) * max(1, x.bound / 2) * max(1, y.bound / 2)
    value = w.make(text, x, y, dtype=result, shape=shape, low=-bound, high=bound)
    w.words += ["dot_general", kind, w.pick(("product", "rows", "memory"))]
    w.title = (
        "Multiply arrays with dimension numbers"
        if kind != "tensordot"
        else ("Contract two arrays with tensordot")
    )
    leave(w, w.let("product", value), [], 4)


@template("factorisation", "linear algebra", 9)
def factorisation(w: Writer) -> None:
    """Write a factorisation of a matrix and functions of its factors."""
    kind = w.pick(
        (
            "cholesky",
            "qr",
            "svd",
            "eigh",
            "eigh",
            "eigh",
            "lu",
            "lu",
            "lu",
            "svdvals",
            "eigvalsh",
            "slogdet",
            "inv",
            "pinv",
        )
    )
    batch, n = batched(w)
    dtype = w.wide()
    definite = kind in ("cholesky", "eigh", "eigvalsh", "slogdet", "inv", "pinv")
    shape = (*batch, n, n) if definite or kind == "lu" else (*batch, n + w.between(0, 3), n)
    names = "covariance matrix gram" if definite else "matrix basis design"
    x = w.array(names, dtype, shape, "definite" if definite else "normal")
    if w.chance(0.3):
        eye = f"0.1 * jnp.eye({n}, dtype={x}.dtype)"
        x = (
            w.let("regular", w.make(f"{x} + {eye}", x))
            if definite
            else w.let("scaled", w.make(f"0.5 * {x}", x))
        )
    y, result = _factor(w, kind, x, batch, n)
    w.words += [kind, w.pick(("of", "features", "summary", "factor")), names.split()[0]]
    w.title = f"Factorise a {names.split()[0]} matrix with {kind}"
    leave(w, result, [y] if y.shape == result.shape else [], 4)


def _factor(w: Writer, kind: str, x: Value, batch: tuple[int, ...], n: int) -> tuple[Value, Value]:
    if kind in ("svdvals", "eigvalsh"):
        text = (
            f"jnp.linalg.svd({x}, compute_uv=False)"
            if kind == "svdvals"
            else (f"jnp.linalg.eigvalsh({x})")
        )
        y = w.let("spectrum", w.make(text, x, shape=(*batch, n), low=0, high=12))
        return y, y
    if kind == "slogdet":
        w.line(f"sign, log_size = jnp.linalg.slogdet({x})")
        y = w.make("log_size", x, shape=batch, low=-3 * n, high=2 * n)
        return y, w.let("signed", w.make("sign * log_size", y))
    if kind in ("inv", "pinv"):
        y = w.let("inverse", w.make(f"jnp.linalg.{kind}({x})", x, low=-3, high=3))
        return y, y
    if kind == "cholesky":
        text = w.pick((f"jnp.linalg.cholesky({x})", f"lax.linalg.cholesky({x})"))
        y = w.let("factor", w.make(text, x, low=-2, high=3))
        if w.chance(0.5):
            text = f"jnp.log(jnp.diagonal({y}, axis1=-2, axis2=-1))"
            return y, w.let("log_diagonal", w.make(text, y, shape=(*batch, n), low=-1, high=2))
        return y, y
    if kind == "qr":
        w.line(f"q, r = jnp.linalg.qr({x})")
        y = w.make("r", x, shape=(*batch, n, n), low=-9, high=9)
        q = w.make("q", x, low=-1, high=1)
        if w.chance(0.5):
            return y, w.let("size", w.make("jnp.abs(r)", y, low=0, high=9))
        text = f"jnp.abs({q}) @ jnp.abs({y})"
        return y, w.let("bounded", w.make(text, q, y, shape=x.shape, low=0, high=30))
    if kind == "svd":
        w.line(f"u, s, vt = jnp.linalg.svd({x}, full_matrices=False)")
        rank = w.between(1, max(1, n - 1))
        text = f"(u[..., :{rank}] * s[..., None, :{rank}]) @ vt[..., :{rank}, :]"
        s = w.make("s", x, shape=(*batch, n), low=0, high=12)
        return s, w.let("truncated low_rank", w.make(text, x, low=-5, high=5))
    if kind == "eigh":
        w.line(f"eigenvalues, vectors = jnp.linalg.eigh({x})")
        y = w.make("eigenvalues", x, shape=(*batch, n), low=0.2, high=9)
        function = w.pick(("jnp.sqrt", "jnp.log", "jnp.reciprocal", "jnp.sqrt"))
        w.line(f"mapped_values = {function}(eigenvalues)")
        text = "(vectors * mapped_values[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)"
        return y, w.let("matrix_function", w.make(text, x, low=-5, high=5))
    lu, pivots, permutation = w.name("lu"), w.name("pivots"), w.name("permutation")
    w.line(f"{lu}, {pivots}, {permutation} = lax.linalg.lu({x})")
    y = w.make(lu, x, low=-9, high=9)
    text = f"lax.linalg.lu_pivots_to_permutation({pivots}, {n})"
    order = w.let("order", Value(text, "int32", (*batch, n), 0, n))
    text = f"{order}.astype({jnp_dtype(x.dtype)})[..., None]"
    scaled = w.make(f"{lu} * (1.0 + {text})", y, low=-60, high=60)
    return y, w.let("weighted", scaled)


@template("solving", "linear algebra", 5)
def solving(w: Writer) -> None:
    """Write solutions of linear systems."""
    kind = w.pick(
        (
            "solve",
            "cho_solve",
            "triangular",
            "lstsq",
            "cg",
            "tridiagonal",
            "tridiagonal",
            "tridiagonal",
            "custom",
            "custom",
            "lax",
        )
    )
    dtype, n, k = w.wide(), w.size(2, 10), w.size(2, 6)
    rule = "triangular" if kind in ("triangular", "lax") else "definite"
    names = {"triangular": "factor lower", "definite": "matrix covariance system"}[rule]
    if kind == "tridiagonal":
        diagonals = [w.array(name, dtype, (n,), "unit") for name in ("below", "above")]
        main = w.array("diagonal", dtype, (n,), "positive")
        b = w.array("rhs targets", dtype, (n, k))
        w.line(f"stiff = {main} + 2.0")
        text = f"lax.linalg.tridiagonal_solve({diagonals[0]}, stiff, {diagonals[1]}, {b})"
        y = w.make(text, b, main, *diagonals, low=-8, high=8)
        w.lines[-1] = w.lines[-1].replace("stiff", "stiff")
        w.words += ["tridiagonal", "solve"]
        w.title = "Solve a tridiagonal system"
        # The first of the lower and the last of the upper elements are ignored.
        w.give(w.let("solution", y))
        return
    a = w.array(names, dtype, (n, n), rule)
    b = prepare(w, w.array("rhs targets b", dtype, (n,) if kind == "cg" else (n, k)), 1)
    b = w.let("rhs_values", b)
    text = {
        "solve": f"jnp.linalg.solve({a}, {b})",
        "triangular": f"jax.scipy.linalg.solve_triangular({a}, {b}, lower=True)",
        "lax": f"lax.linalg.triangular_solve({a}, {b}, left_side=True, lower=True)",
        "lstsq": f"jnp.linalg.lstsq({a}, {b})[0]",
        "cg": f"jax.scipy.sparse.linalg.cg({a}, {b}, maxiter={w.between(2, 6)})[0]",
        "cho_solve": f"jax.scipy.linalg.cho_solve((factor_l, True), {b})",
        "custom": f"lax.custom_linear_solve(matvec, {b}, solve_with, symmetric=True)",
    }[kind]
    if kind == "cho_solve":
        w.line(f"factor_l = jnp.linalg.cholesky({a})")
    if kind == "custom":
        with w.nested("matvec(v)"):
            w.line(f"return {a} @ v")
        with w.nested("solve_with(_, v)"):
            w.line(f"return jnp.linalg.solve({a}, v)")
    if kind == "cg":
        w.labels.add("own-derivative")  # that of the solution, which so few iterations do not reach
        with w.nested("matvec(v)"):
            w.line(f"return {a} @ v")
        text = text.replace(f"cg({a},", "cg(matvec,")
    y = w.let("solution", w.make(text, b, a, low=-12, high=12))
    w.words += [kind, w.pick(("system", "linear_system", "equations"))]
    w.title = f"Solve a linear system with {kind.replace('_', ' ')}"
    if w.chance(0.4):
        column = "" if y.rank == 1 else "[:, None]"
        text = f"{y} * jnp.diagonal({a}){column} - 0.5 * {b}"
        y = w.let("rescaled", w.make(text, y, a, b, low=-40, high=40))
    leave(w, y, [b], 3)


@template("matrix functions", "linear algebra", 3)
def functions(w: Writer) -> None:
    """Write functions of matrices."""
    _write_functions(w, [w.pick(FUNCTIONS)])


@template("rare decompositions", "linear algebra", 13)
def rare(w: Writer) -> None:
    """Write one or two decompositions that are rarely used."""
    kinds = list(dict.fromkeys(RARE))
    w.random.shuffle(kinds)
    _write_functions(w, kinds[: w.between(1, 2)])


FUNCTIONS = (
    *("expm", "det", "matrix_power", "kron", "norm", "cov", "trace", "cross", "multi_dot"),
    *("vander", "symmetric_part", "block_diag", "toeplitz"),
)
RARE = (
    *("schur", "hessenberg", "tridiagonal", "tridiagonal", "householder", "ormqr", "eig"),
    *("cholesky_update", "symmetric_product"),
)


def _write_functions(w: Writer, kinds: list[str]) -> None:
    dtype, n = w.wide(), w.size(3, 8)
    kind = kinds[0]
    x = w.array("matrix generator operator", dtype, (n, n), "definite")
    small = w.let("small", w.make(f"{x} / {float(n)}", x, low=-1, high=1)) if w.chance(0.5) else x
    y = _function(w, kind, small, n)
    for other in kinds[1:]:
        y = w.let("first_part", y)
        second = w.let("second_part", _function(w, other, small, n))
        y = w.make(f"{y} + jnp.mean({second})", y, second, low=y.low - 20, high=y.high + 20)
    w.words += [*kinds[1:], kind, w.pick(("of_matrix", "features", "transform"))]
    w.title = f"Compute {' and '.join(kinds).replace('_', ' ')} of a matrix"
    leave(w, w.let("transformed", y), [], 4)


def _function(w: Writer, kind: str, x: Value, n: int) -> Value:
    def made(text: str, shape: tuple[int, ...] = (), bound: float = 9.0) -> Value:
        return w.make(text, x, shape=shape, low=-bound, high=bound)

    square = (n, n)
    if kind in ("hessenberg", "schur", "tridiagonal", "householder", "ormqr", "eig"):
        return _decomposed(w, kind, x, n)
    if kind in ("expm",):
        text = "jax.scipy.linalg.expm({x} / 4.0)"
        return made(text.format(x=x), square)
    if kind == "cholesky_update":
        v = w.array("update direction", x.dtype, (n,))
        w.blocked(v, x)
        w.line(f"factor = jnp.linalg.cholesky({x}).T")
        return w.make(f"lax.linalg.cholesky_update(factor, {v})", x, v, low=-6, high=6)
    if kind == "symmetric_product":
        c = w.array("rows design", x.dtype, (n, w.size(2, 6)))
        text = f"lax.linalg.symmetric_product({c}, {x}, alpha=0.5, beta=2.0)"
        w.blocked(x, c)
        value = w.make(text, x, c, low=-20, high=20)
        return w.make(f"jnp.tril({w.let('product', value)})", value)
    if kind == "cross":
        one, other = w.array("a axis", x.dtype, (n, 3)), w.array("b arm", x.dtype, (n, 3))
        crossed = w.let(
            "torque", w.make(f"jnp.cross({one}, {other})", one, other, low=-20, high=20)
        )
        return w.make(f"{x} @ {crossed}", x, crossed, shape=(n, 3), low=-60, high=60)
    return {
        "det": made(f"jnp.linalg.det({x})"),
        "matrix_power": made(f"jnp.linalg.matrix_power({x}, {w.between(2, 4)})", square, 80),
        "kron": made(f"jnp.kron({x}, jnp.eye(2, dtype={x}.dtype))", (2 * n, 2 * n)),
        "norm": made(
            f"jnp.linalg.norm({x}, ord={w.pick(('2', 'chr', '1'))})".replace("chr", '"nuc"')
        ),
        "cov": made(f"jnp.cov({x})", square),
        "trace": made(f"jnp.trace({x} @ {x})", (), 30),
        "multi_dot": made(f"jnp.linalg.multi_dot([{x}, {x}.T, {x}])", square, 80),
        "vander": made(f"jnp.vander(jnp.diagonal({x}) / 4.0, 3)", (n, 3)),
        "symmetric_part": made(f"jnp.triu({x}) + jnp.tril({x}, k=-1).T", square),
        "block_diag": made(f"jax.scipy.linalg.block_diag({x}, 2.0 * {x})", (2 * n, 2 * n)),
        "toeplitz": made(f"jax.scipy.linalg.toeplitz({x}[0])", square),
    }[kind]


def _decomposed(w: Writer, kind: str, x: Value, n: int) -> Value:
    real = x.dtype
    if kind == "eig":
        complex_ = complex_dtype(real)
        skew = w.let("skewed", w.make(f"{x} + jnp.triu({x}, k=1)", x))
        values = w.make(f"jnp.linalg.eigvals({skew})", skew, dtype=complex_, shape=(n,))
        values = w.let("eigenvalues", values)
        text = f"jnp.sort(jnp.abs({values}))"
        return w.make(text, values, dtype=real_dtype(complex_), low=0, high=12)
    w.blocked(x)
    if kind == "schur":
        w.line(f"triangle, basis = lax.linalg.schur({x})")
        return w.make("jnp.abs(triangle) + jnp.abs(basis)", x, low=0, high=12)
    if kind == "hessenberg":
        w.line(f"packed, taus = lax.linalg.hessenberg({x})")
        return w.make(
            "jnp.abs(packed[:-1]) + jnp.abs(taus)[:, None]", x, shape=(n - 1, n), low=0, high=9
        )
    if kind == "tridiagonal":
        w.line(f"packed, diagonal, off_diagonal, taus = lax.linalg.tridiagonal({x})")
        text = "jnp.abs(diagonal[1:]) + jnp.abs(off_diagonal) + jnp.abs(taus)"
        return w.make(text, x, shape=(n - 1,), low=0, high=12)
    w.line(f'packed, taus = jnp.linalg.qr({x}, mode="raw")')
    w.line("reflectors = packed.T")
    if kind == "householder":
        return w.make("jnp.abs(lax.linalg.householder_product(reflectors, taus))", x, low=0, high=1)
    text = "lax.linalg.ormqr(reflectors, taus, jnp.ones_like(reflectors))"
    return w.make(f"jnp.abs({text})", x, low=0, high=4)


@template("fourier", "linear algebra", 3)
def fourier(w: Writer) -> None:
    """Write Fourier transforms and filters of spectra."""
    dtype = w.wide()
    n = w.pick((4, 6, 8, 10, 12, 16, 32))
    batch = w.shape(0, 2, 6)
    x = prepare(w, w.array("signal waveform samples", dtype, (*batch, n)), 1)
    x = w.let("signal_values", calm(w, x))
    complex_ = complex_dtype(dtype)
    half = n // 2 + 1
    kind = w.pick(("filter", "power", "convolve", "shift", "inverse", "two"))
    w.words += ["spectrum", kind]
    w.title = f"Transform a signal to frequencies: {kind}"
    bound = 4 * math.sqrt(n) * max(1.0, x.bound / 2)
    if kind == "power" or (kind == "two" and not batch):
        spectrum = w.make(f"jnp.fft.rfft({x}, axis=-1)", x, dtype=complex_, shape=(*batch, half))
        spectrum = w.let("spectrum", spectrum)
        y = w.make(f"jnp.log1p(jnp.abs({spectrum}))", spectrum, dtype=dtype, low=0, high=6)
    elif kind == "filter":
        gains = w.array("gains response", dtype, (half,))
        spectrum = w.make(f"jnp.fft.rfft({x})", x, dtype=complex_, shape=(*batch, half))
        spectrum = w.let("spectrum", spectrum)
        filtered = w.let("filtered", w.make(f"{spectrum} * {gains}", spectrum, gains))
        text = f"jnp.fft.irfft({filtered}, n={n})"
        y = w.make(text, filtered, dtype=dtype, shape=x.shape, low=-bound, high=bound)
    elif kind == "convolve":
        kernel = w.array("kernel impulse", dtype, (n,))
        w.line(f"product = jnp.fft.fft({x}) * jnp.fft.fft({kernel})")
        text = "jnp.real(jnp.fft.ifft(product))"
        y = w.make(text, x, kernel, low=-2 * bound, high=2 * bound)
    elif kind == "shift":
        text = f"jnp.fft.fftshift(jnp.fft.fft({x}), axes=-1)"
        spectrum = w.let("spectrum", w.make(text, x, dtype=complex_))
        parts = w.pick(("jnp.real({s}) + jnp.imag({s})", "jnp.abs({s})", "jnp.imag({s})"))
        y = w.make(parts.format(s=spectrum), spectrum, dtype=dtype, low=-bound, high=bound)
    elif kind == "inverse":
        text = f"jnp.fft.ifft({x} * jnp.exp(2j * jnp.pi * {x} / 8.0).astype(jnp.{complex_}))"
        spectrum = w.let("signal_back", w.make(text, x, dtype=complex_))
        y = w.make(f"jnp.abs({spectrum})", spectrum, dtype=dtype, low=0, high=bound)
    else:
        text = f"jnp.fft.fft2({x})" if len(batch) else ""
        spectrum = w.let("spectrum", w.make(text, x, dtype=complex_))
        y = w.make(f"jnp.abs({spectrum})", spectrum, dtype=dtype, low=0, high=bound * 4)
    leave(w, calm(w, w.let("amplitude", y)), [x], 4)
