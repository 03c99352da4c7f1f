"""Templates of arithmetic, and of mathematical and special functions."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("polynomial", "arithmetic", 2)
def polynomial_KIND(x: F[S, "unit"], z: CPX[S], coefficients: F[DEGREE + 1], scale: F[()]):
    """Evaluate a polynomial of degree DEGREE."""
    S, DEGREE = shape(0, 3), between(2, 6)
    KIND = choose("horner", "polyval", "basis", "chebyshev", "complex", "loop", "taylor")
    if KIND == "horner":
        value = coefficients[0] * jnp.ones_like(x)
        for K in range(1, DEGREE + 1):
            value = value * x + coefficients[K]
        y: F[S] = choose(value, scale * value, value)
    elif KIND == "loop":
        value = jnp.zeros_like(x)
        for coefficient in choose(coefficients, coefficients[::-1]):
            value = value * x + coefficient
        y: F[S] = value
    elif KIND == "polyval":
        y: F[S] = choose(jnp.polyval(coefficients, x), jnp.polyval(jnp.polyder(coefficients), x))
    elif KIND == "basis":
        powers = choose(
            x[..., None] ** jnp.arange(DEGREE + 1), jnp.stack([x**k for k in range(DEGREE + 1)], -1)
        )
        y: F[S] = choose(powers @ coefficients, jnp.sum(powers * coefficients, axis=-1))
    elif KIND == "chebyshev":
        previous, current = jnp.ones_like(x), x
        total = coefficients[0] + coefficients[1] * x
        for K in range(2, DEGREE + 1):
            previous, current = current, 2.0 * x * current - previous
            total = total + coefficients[K] * current
        y: F[S] = total
    elif KIND == "taylor":
        y: F[S] = choose(
            x - x**3 / 6.0 + x**5 / 120.0,
            1.0 - x**2 / 2.0 + x**4 / 24.0,
            1.0 + scale * x + 0.5 * (scale * x) ** 2,
            x - x**2 / 2.0 + x**3 / 3.0,
            coefficients[0] + coefficients[1] * x + coefficients[2] * x**2,
        )
    else:
        y: CPX[S] = choose(
            z**2 + choose(0.25, -0.5),
            z**3 - 1.0,
            z - (z**3 - 1.0) / (3.0 * jnp.abs(z) ** 2 + 1.0),
            (0.5 + 0.5j) * z**2 - z,
        )
    return more(y, most=2)


@template("mixed types", "arithmetic")
def combine_W_and_SMALL(x: W[S], y: SMALL[S]):
    """Combine an array of W with one of SMALL."""
    S = shape(0, 4)
    SMALL = dtype("bfloat16", "float16", "int8", "uint8", "int16", "bool", "int32", "uint16")
    NARROW = dtype("bfloat16", "float16", "float32")
    left: W[S] = choose(mapped(x), x)
    right: W[S] = y.astype(jnp.W)
    z: W[S] = choose(left * right, left + right, right - left, 0.5 * (left + right))
    if chance(0.3):
        narrow: NARROW[S] = z.astype(jnp.NARROW)
        return more(narrow, most=2)
    return more(z, most=2)


@template("complex arithmetic", "arithmetic", 5)
def NAME(z: CPX[S], u: CPX[S], real_part: P[S], phase: P[S], detuning: P[()]):
    """TITLE."""
    S = shape(0, 3)
    KIND, NAME, TITLE = choose(
        *(("wave", "interfere", "Add a wave to an amplitude"),),
        *(("wave", "with_carrier", "Multiply a signal with its carrier"),),
        *(("pair", "combine_amplitudes", "Combine complex amplitudes"),),
        *(("single", "transform_amplitude", "Transform complex amplitudes"),),
        *(("mobius", "mobius", "Apply a Möbius transformation"),),
        *(("response", "frequency_response", "Compute the response of a resonator"),),
        *(("impedance", "impedance", "Compute impedances of circuits"),),
        *(("julia", "julia_steps", "Iterate a quadratic map of the complex plane"),),
    )
    P = "float64" if CPX == "complex128" else "float32"
    if KIND == "wave":
        wave: CPX[S] = choose(
            lax.complex(real_part, phase), real_part + 1j * phase, real_part * jnp.exp(1j * phase)
        )
        x: CPX[S] = choose(z * wave, jnp.conj(z) * wave, z * jnp.conj(wave))
    elif KIND == "mobius":
        x: CPX[S] = choose(
            (z - 0.5j) / (z + 4.0j + jnp.abs(z)),
            (z - 0.3) / (1.0 + jnp.abs(z)),
            1.0 / (z + 6.0),
            (2.0 * z + 1.0) / (jnp.conj(z) * z + 2.0),
        )
    elif KIND == "response":
        frequency = real_part + detuning
        x: CPX[S] = choose(
            1.0 / (1.0 + 1j * frequency),
            u / (1.0 - frequency**2 + 0.5j * frequency),
            jnp.exp(-1j * frequency) / (1.0 + 1j * frequency),
            z / (1.0 + 1j * frequency),
        )
    elif KIND == "impedance":
        load = jnp.abs(real_part) + 1.0 + 1j * phase
        x: CPX[S] = choose(
            load * z / (load + jnp.abs(z)), (load - 1.0) / (load + 1.0), 1.0 / load + u, u / load
        )
    elif KIND == "julia":
        x = z / (1.0 + jnp.abs(z))
        for _ in range(between(2, 4)):
            x = choose(x**2 + 0.3j, x**2 + 0.25 * u / (1.0 + jnp.abs(u)))
        x: CPX[S] = x - z
    elif KIND == "pair":
        x: CPX[S] = mixed(z, u)
    else:
        x: CPX[S] = mixed(z)
    if chance(0.5):
        part: P[S] = number(x, P)
        return more(part, most=2)
    return more(x, most=2)


@template("reduced precision", "arithmetic", 4)
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
        y: W[S] = choose(jnp.abs(source - coarse), (source - coarse) / (jnp.abs(source) + 1e-3))
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
    return more(y, most=2)


@template("special functions", "math", 4)
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
    return more(y, most=2, style="quantity")


@template("gamma and zeta functions", "math", 15)
def KIND_curve(a: W[S, "positive"], b: W[S, OTHER]):
    """Evaluate the special function KIND elementwise."""
    S = shape(1, 2, 16)
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
    return more(y, most=2, style="quantity")


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
        if chance(0.4):
            return level, slope
        y: W[S] = choose(slope / level, slope, level + 0.1 * slope)
    elif KIND == "grad":
        y: W[S] = jax.grad(lambda order: jnp.sum(NAME(order)))(a)
    else:
        total, slope = jax.value_and_grad(lambda order: jnp.sum(NAME(order)))(a)
        return choose((total, slope), (slope, a - 0.1 * slope), a - 0.1 * (total - 1.0) * slope)
    return more(y, most=1, style="quantity")


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
    z: F[S] = choose(stepped, x - stepped, binary(rest, stepped), y * stepped)
    return more(z, most=2)


@template("masked math", "math")
def NAME_in_two_regimes(x: F[S], y: F[S]):
    """Use another formula where a condition on the arguments holds."""
    S, NAME = shape(1, 4), choose("blend", "response", "drag", "loss", "potential")
    condition = choose(compared(x), compared(x, y), jnp.abs(x) < 1.0)
    first: F[S] = choose(mixed(x, y), mapped(x), x)
    second: F[S] = choose(y, mapped(y), 0.1 * y, y - x)
    z: F[S] = jnp.where(condition, first, second)
    return more(z, most=2)


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
        return more(near, most=1)
    if KIND == "exponent":
        y: BITS[S] = (bits >> DIGITS) & 255
    elif KIND == "mantissa":
        y: BITS[S] = bits & (2 ** min(DIGITS, 14) - 1)
    else:
        y: BITS[S] = mixed(bits)
    if chance(0.5):
        z: F32[S] = y.astype(jnp.float32)
        return more(z, most=1)
    return more(y, most=1)
