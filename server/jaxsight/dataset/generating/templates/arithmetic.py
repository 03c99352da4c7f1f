"""Templates of arithmetic, and of mathematical and special functions."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("expression tree", "arithmetic", 3)
def combine_NAME(FIRST: F[S], SECOND: F[S], THIRD: F[S[K:], RULE], FOURTH: F[()]):
    """Combine NAME elementwise."""
    S, RULE = shape(0, 4), choose("normal", "positive", "unit", "uniform")
    K = choose(0, 0, 0, between(0, len(S)))
    NAME = choose("signals", "energies", "prices", "distances", "reactions", "losses", "images")
    FIRST = choose("x", "mass", "price", "signal", "image", "state", "position")
    SECOND = choose("y", "velocity", "discount", "noise", "background", "target", "momentum")
    THIRD = choose("z", "height", "tax", "gain", "contrast", "error", "charge")
    FOURTH = choose("w", "drag", "rate", "offset", "depth", "control", "field")
    COUNT = between(1, 4)
    if COUNT == 1:
        total: F[S] = mixed(FIRST)
    elif COUNT == 2:
        total: F[S] = mixed(FIRST, SECOND)
    elif COUNT == 3:
        total: F[S] = mixed(FIRST, THIRD)
    else:
        total: F[S] = mixed(FIRST, SECOND, FOURTH)
    if chance(0.5):
        part: F[S] = mixed(FIRST)
        total: F[S] = binary(total, part)
    return more(total, most=2)


@template("polynomial", "arithmetic")
def polynomial_KIND(x: F[S, "unit"], z: CPX[S], coefficients: F[DEGREE + 1]):
    """Evaluate a polynomial of degree DEGREE."""
    S, DEGREE = shape(0, 3), between(2, 6)
    KIND = choose("horner", "powers", "polyval", "complex")
    SIGN, FACTOR = choose("+", "-"), choose(0.5, 1.5, 0.25)
    if KIND == "horner":
        value = coefficients[0] * jnp.ones_like(x)
        for K in range(1, DEGREE + 1):
            value = value * x + coefficients[K]
        return value
    if KIND == "polyval":
        y: F[S] = jnp.polyval(coefficients, x)
    elif KIND == "powers":
        y: F[S] = FACTOR * x + choose(1.5, 0.5) * x**2 - choose(2.0, 3.0) * x**DEGREE
        if chance(0.5):
            y: F[S] = y + choose(0.25, 3.0) * x ** (DEGREE + 1)
    else:
        inner = z / (1.0 + jnp.abs(z))
        y: CPX[S] = FACTOR * inner - choose(1.5, 0.5, 2.0) * inner**DEGREE
    return more(y, most=3)


@template("integer arithmetic", "arithmetic", 3)
def NAME_bits(words: INT[S], salt: INT[S], offsets: INT[S[1:]]):
    """Mix the bits of integers."""
    S, NAME = shape(0, 4), choose("mix", "hash", "pack", "wrap", "encode", "tally")
    WIDTH = 8 if "8" in INT else 16 if "16" in INT else 32
    x: INT[S] = choose(mixed(words), mixed(words, salt), mixed(words, offsets))
    if chance(0.4):
        K = between(1, WIDTH - 4)
        if INT[0] == "u":
            x: INT[S] = (x << K) | (x >> (WIDTH - K))
        else:
            x: INT[S] = choose(lax.shift_right_arithmetic, lax.shift_right_logical)(
                x, jnp.full_like(x, between(1, 4))
            )
    if chance(0.25):
        x: INT[S] = choose(lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic)(
            x, jnp.full_like(x, between(1, 4))
        )
    if INT in ("int32", "uint32", "int64") and chance(0.9):
        FACTOR = choose(715827883, 858993459, 613566757) << (32 if INT == "int64" else 0)
        x: INT[S] = lax.mulhi(x << between(6, 20), jnp.full_like(x, FACTOR))
    y: INT[S] = choose(x ^ words, x + words, x - words)
    if chance(0.2):
        z: F[S] = number(y)
        return more(z, most=2)
    return more(y, most=2)


@template("mixed types", "arithmetic")
def combine_W_and_SMALL(x: W[S], y: SMALL[S]):
    """Combine an array of W with one of SMALL."""
    S = shape(0, 4)
    SMALL = dtype("bfloat16", "float16", "int8", "uint8", "int16", "bool", "int32", "uint16")
    NARROW = dtype("bfloat16", "float16", "float32")
    left: W[S] = mapped(x)
    right: W[S] = number(y, W) if chance(0.5) else y.astype(jnp.W)
    z: W[S] = choose(left * right, left + right, right - left, left * jnp.tanh(right))
    if chance(0.4):
        narrow: NARROW[S] = jnp.arcsinh(z).astype(jnp.NARROW)
        return more(narrow, most=3)
    return more(z, x, most=3)


@template("complex arithmetic", "arithmetic", 3)
def complex_KIND(z: CPX[S], u: CPX[S], real_part: P[S], phase: P[S]):
    """Combine complex numbers."""
    S, KIND = shape(0, 3), choose("wave", "pair", "single")
    P = "float64" if CPX == "complex128" else "float32"
    if KIND == "wave":
        wave: CPX[S] = choose(
            lax.complex(real_part, phase), real_part + 1j * phase, real_part * jnp.exp(1j * phase)
        )
        x: CPX[S] = mixed(z, wave)
    elif KIND == "pair":
        x: CPX[S] = mixed(z, u)
    else:
        x: CPX[S] = mixed(z)
    if chance(0.4):
        part: P[S] = number(x, P)
        return more(part, most=3)
    return more(x, most=3)


@template("reduced precision", "arithmetic", 2)
def KIND_in_NAME(values: W[S], weights: W[S[-1]]):
    """Round values to the precision of NAME."""
    S = shape(1, 3, 24)
    KIND = choose("error", "split", "product", "accumulate", "mapped_values")
    NAME, E, M = choose(("bfloat16", 8, 7), ("float16", 5, 10), ("tf32", 8, 10), ("float8", 5, 2))
    source: W[S] = prepared(values)
    coarse: W[S] = choose(
        lax.reduce_precision(source, E, M),
        lax.reduce_precision(source, exponent_bits=E, mantissa_bits=M),
    )
    if KIND == "error":
        y: W[S] = jnp.abs(source - coarse) + choose(0.1, 0.5) * values
    elif KIND == "split":
        rest = source - coarse
        y: W[S] = coarse + lax.reduce_precision(rest, E, M)
    elif KIND == "product":
        y: W[S] = coarse * lax.reduce_precision(weights, E, M)
    elif KIND == "accumulate":
        y: W[S] = lax.reduce_precision(jnp.cumsum(coarse, axis=-1), E, M)
    else:
        inner: W[S] = mapped(values)
        y: W[S] = lax.reduce_precision(inner, E, M)
    return more(y, values)


@template("elementary functions", "math", 3)
def transform_NAME(x: F[S], y: F[S], scale: F[S[1:]]):
    """Transform NAME elementwise."""
    S = shape(0, 4)
    NAME = choose("curves", "responses", "levels", "phases", "angles", "growth")
    z: F[S] = mapped(x, 3)
    if chance(0.4):
        z: F[S] = binary(z, y)
        z: F[S] = mapped(z, 2)
    if chance(0.4):
        z: F[S] = binary(z, scale)
    if chance(0.4):
        z: F[S] = mapped(z, 2)
    return more(z, x, most=2)


@template("special functions", "math", 3)
def elementwise_KIND(a: W[S, RULE], b: W[S, OTHER]):
    """Evaluate the special function KIND elementwise."""
    S = shape(0, 2, 16)
    KIND, RULE, OTHER = choose(
        *(("gammainc", "positive", "positive"), ("betaln", "positive", "positive")),
        *(("xlogy", "positive", "positive"), ("xlog1py", "positive", "positive")),
        *(("rel_entr", "positive", "positive"), ("beta", "positive", "positive")),
        *(("bessel_i0e", "normal", "normal"), ("bessel_i1e", "normal", "normal")),
        *(("erf_inv", "unit", "normal"), ("erfcx", "positive", "normal")),
        *(("ndtri", "unit", "normal"), ("gammaln", "positive", "normal")),
        *(("gamma", "positive", "positive"), ("norm", "positive", "unit")),
        *(("beta_density", "positive", "uniform"), ("t", "positive", "normal")),
        *(("cauchy", "positive", "normal"), ("laplace", "positive", "normal")),
        ("random_gamma_grad", "positive", "positive"),
    )
    if KIND in ("gammainc", "betaln", "xlogy", "xlog1py", "rel_entr", "beta"):
        y: W[S] = jax.scipy.special.KIND(a, b)
    elif KIND in ("bessel_i0e", "bessel_i1e"):
        y: W[S] = choose(lax.KIND(a) * b, lax.KIND(a) + b)
    elif KIND == "erf_inv":
        y: W[S] = lax.erf_inv(a) - lax.erf(b)
    elif KIND in ("erfcx", "gammaln"):
        y: W[S] = jax.scipy.special.KIND(a) * b
    elif KIND == "ndtri":
        y: W[S] = jax.scipy.special.ndtri(0.5 + 0.5 * a) * b
    elif KIND == "beta_density":
        y: W[S] = jax.scipy.stats.beta.logpdf(0.1 + 0.8 * b, a, 2.0)
    elif KIND in ("norm", "cauchy", "laplace"):
        y: W[S] = jax.scipy.stats.KIND.logpdf(b, scale=a)
    elif KIND == "random_gamma_grad":
        y: W[S] = lax.random_gamma_grad(a, b)
    else:
        y: W[S] = jax.scipy.stats.KIND.logpdf(b, a)
    return more(y, b)


@template("gamma and zeta functions", "math", 4)
def KIND_curve(a: W[S, "positive"], b: W[S, OTHER]):
    """Evaluate the special function KIND elementwise."""
    S = shape(0, 2, 16)
    KIND = choose("igamma", "igammac", "zeta", "polygamma", "igamma_grad_a", "betainc")
    OTHER = "uniform" if KIND == "betainc" else "positive"
    if KIND == "zeta":
        y: W[S] = lax.zeta(a + 1.5, b)
    elif KIND == "polygamma":
        y: W[S] = lax.polygamma(jnp.round(a), b + 0.2)
    elif KIND == "betainc":
        y: W[S] = choose(lax.betainc(a, a + 1.0, b), lax.betainc(a + 0.5, a, b))
    else:
        y: W[S] = lax.KIND(a, b)
    return more(y, a)


@template("derivatives of gamma functions", "math", 2)
def NAME_slope_by_KIND(a: W[S, "positive"], b: W[S, "positive"]):
    """Differentiate NAME values by their shape parameter."""
    S = shape(0, 2, 12)
    KIND = choose("grad", "jvp", "value_and_grad", "direct")
    NAME = choose("cdf", "probability", "mass")
    rates = choose(1.5, 0.8, 2.0) * b
    if KIND == "direct":
        y: W[S] = lax.igamma_grad_a(a, rates)
        return more(y, b)

    def NAME(order):
        return choose(
            jax.scipy.special.gammainc(order, rates),
            jax.scipy.special.gammaincc(order, rates),
            lax.igamma(order, rates),
            1.0 - lax.igamma(order, rates),
            jax.scipy.stats.gamma.cdf(rates, order),
            jax.scipy.stats.chi2.cdf(rates, 2.0 * order),
            jnp.log(lax.igamma(order, rates)),
        )

    if KIND == "jvp":
        level, slope = jax.jvp(NAME, (a,), (jnp.ones_like(a),))
        y: W[S] = choose(slope - 0.1 * level, level + slope, slope * level)
    elif KIND == "grad":
        y: W[S] = jax.grad(lambda order: jnp.sum(NAME(order)))(a)
    else:
        total, slope = jax.value_and_grad(lambda order: jnp.sum(NAME(order)))(a)
        y: W[S] = choose(slope / (1.0 + total**2), slope + 0.1 * total)
    return more(y, b)


@template("rounding", "math")
def KIND_values(x: F[S], y: F[S]):
    """Compute KIND values of an array."""
    S = shape(0, 4)
    KIND = choose(
        *"quantized fractional distance signed coarse even away clamped finite next".split(),
        *"remainder rem modf".split(),
    )
    if KIND == "quantized":
        stepped: F[S] = jnp.round(x * 4.0) / 4.0
    elif KIND == "fractional":
        stepped: F[S] = x - jnp.floor(x)
    elif KIND == "distance":
        stepped: F[S] = jnp.ceil(x) - x
    elif KIND == "signed":
        stepped: F[S] = jnp.sign(x) * jnp.sqrt(jnp.abs(x) + 0.1)
    elif KIND == "coarse":
        stepped: F[S] = lax.reduce_precision(x, 5, 7)
    elif KIND == "even":
        stepped: F[S] = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    elif KIND == "away":
        stepped: F[S] = lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)
    elif KIND == "clamped":
        stepped: F[S] = choose(
            jnp.clip(x, -1.5, 2.0), lax.clamp(jnp.F(-1.5), x, jnp.F(2.0)), jnp.clip(x, -2.5, 1.0)
        )
    elif KIND == "finite":
        stepped: F[S] = jnp.where(lax.is_finite(x), x, 0.0)
    elif KIND == "next":
        stepped: F[S] = lax.nextafter(x, jnp.zeros_like(x))
    elif KIND == "remainder":
        stepped: F[S] = jnp.fmod(x, 1.5)
    elif KIND == "rem":
        stepped: F[S] = lax.rem(x, jnp.full_like(x, 0.75))
    else:
        stepped: F[S] = jnp.modf(x)[0]
    rest: F[S] = choose(mixed(x), mixed(x, y))
    z: F[S] = binary(rest, stepped)
    return more(z, most=3)


@template("masked math", "math")
def NAME_in_two_regimes(x: F[S], y: F[S]):
    """Use another formula where a condition on the arguments holds."""
    S, NAME = shape(0, 4), choose("blend", "mask", "split", "switch", "guard")
    condition = choose(compared(x), compared(x, y))
    first: F[S] = choose(mixed(x, y), mapped(x))
    second: F[S] = mapped(y)
    z: F[S] = jnp.where(condition, first, second)
    return more(z, x, most=3)


@template("bits of floats", "math")
def KIND_of_float(x: D[S, "positive"]):
    """Work on the bits of D values."""
    S, KIND = shape(0, 3), choose("exponent", "mantissa", "mix", "round_trip")
    D, BITS, DIGITS = choose(
        *(("float32", "int32", 23), ("float32", "uint32", 23), ("float64", "int64", 52)),
        *(("float16", "int16", 10), ("bfloat16", "uint16", 7)),
    )
    bits: BITS[S] = choose(lax.bitcast_convert_type(x, jnp.BITS), x.view(jnp.BITS))
    if KIND == "round_trip":
        toggled = bits ^ between(1, 7)
        near: D[S] = lax.bitcast_convert_type(toggled, jnp.D)
        return more(near, most=3)
    if KIND == "exponent":
        y: BITS[S] = (bits >> DIGITS) & 255
    elif KIND == "mantissa":
        y: BITS[S] = bits & (2 ** min(DIGITS, 14) - 1)
    else:
        y: BITS[S] = mixed(bits)
    if chance(0.5):
        z: F32[S] = number(y, F32)
        return more(z, most=3)
    return more(y, most=3)
