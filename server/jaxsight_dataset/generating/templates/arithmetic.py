"""Templates of arithmetic, and of mathematical and special functions."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("mixed types", "arithmetic")
def combine_W_and_SMALL(x: W[S], y: SMALL[S]):
    """Combine an array of W with one of SMALL."""
    S = shape(0, 4)
    SMALL = dtype("bfloat16", "float16", "int8", "uint8", "int16", "bool", "int32", "uint16")
    left: W[S] = choose(mapped(x), x)
    right: W[S] = y.astype(jnp.W)
    z: W[S] = choose(left * right, left + right, right - left, 0.5 * (left + right))
    return more(z, most=2)


@template("complex arithmetic", "arithmetic", 7)
def NAME(z: CPX[S], u: CPX[S], real_part: P[S], phase: P[S], detuning: P[()]):
    """TITLE."""
    S = shape(0, 3)
    KIND, NAME, TITLE = choose(
        ("wave", "interfere", "Add a wave to an amplitude"),
        ("pair", "combine_amplitudes", "Combine complex amplitudes"),
        ("response", "frequency_response", "Compute the response of a resonator"),
    )
    P = "float64" if CPX == "complex128" else "float32"
    if KIND == "wave":
        wave: CPX[S] = choose(lax.complex(real_part, phase), real_part * jnp.exp(1j * phase))
        x: CPX[S] = choose(z * wave, jnp.conj(z) * wave)
    elif KIND == "response":
        frequency = real_part + detuning
        x: CPX[S] = choose(z, u) / (1.0 - frequency**2 + choose(0.5j, 1j) * frequency)
    else:
        x: CPX[S] = choose(mixed(z, u), mixed(z))
    if chance(0.5):
        part: P[S] = number(x, P)
        return more(part, most=2)
    return more(x, most=2)


@template("gamma and zeta functions", "math", 34)
def KIND_curve(a: W[S, "positive"], b: W[S, OTHER]):
    """Evaluate the special function KIND elementwise."""
    S = shape(1, 2, 16)
    KIND, VALUE = choose(
        ("igamma", "lax.igamma(a, b)"),
        ("igammac", "lax.igammac(a, b)"),
        ("igamma_slope", "lax.igamma_grad_a(a, b)"),
        ("zeta", "lax.zeta(a + 1.5, b)"),
        ("polygamma", "lax.polygamma(jnp.round(a), b + 0.2)"),
        ("betainc", "lax.betainc(a, a + 1.0, b)"),
    )
    OTHER = "uniform" if KIND == "betainc" else "positive"
    y: W[S] = VALUE
    return more(y, most=2, style="quantity")


@template("rounding", "math", 24)
def KIND_values(x: F[S], y: F[S]):
    """Compute KIND values of an array."""
    S = shape(0, 4)
    KIND, STEP = choose(
        ("quantized", "jnp.round(x * 4.0) / 4.0"),
        ("fractional", "jnp.ceil(x) - x"),
        ("coarse", "lax.reduce_precision(x, 5, 7)"),
        ("short", "lax.reduce_precision(x, 8, 5)"),
        ("even", "lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)"),
        ("clamped", "lax.clamp(jnp.asarray(-1.5, x.dtype), x, jnp.asarray(2.0, x.dtype))"),
        ("after", "lax.nextafter(x, jnp.full_like(x, 9.0))"),
        ("next", "lax.nextafter(x, jnp.zeros_like(x))"),
        ("remaining", "lax.rem(x, jnp.full_like(x, 0.75))"),
    )
    stepped: F[S] = STEP
    rest: F[S] = choose(mixed(x), mixed(x, y))
    z: F[S] = choose(stepped, x - stepped, binary(rest, stepped), y * stepped)
    return more(z, most=2)
