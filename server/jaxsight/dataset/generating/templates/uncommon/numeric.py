"""Templates of eigenvalues, of derivatives of gamma functions, and of reduced precision."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import chain
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, prepare
from jaxsight.dataset.generating.types import complex_dtype, real_dtype
from jaxsight.dataset.generating.vocabulary import DATA
from jaxsight.dataset.generating.writer import Writer

CDFS = (
    ("gamma_cdf", "jax.scipy.special.gammainc({a}, {b})"),
    ("gamma_tail", "jax.scipy.special.gammaincc({a}, {b})"),
    ("gamma_cdf", "lax.igamma({a}, {b})"),
    ("gamma_tail", "1.0 - lax.igamma({a}, {b})"),
    ("gamma_cdf", "jax.scipy.stats.gamma.cdf({b}, {a})"),
    ("chi2_cdf", "jax.scipy.stats.chi2.cdf({b}, 2.0 * {a})"),
    ("log_gamma_cdf", "jnp.log(lax.igamma({a}, {b}))"),
)


@template("derivatives of gamma functions", "math", 2)
def gamma_slopes(w: Writer) -> None:
    """Write derivatives of incomplete gamma functions with respect to their shape parameter."""
    dtype, shape = w.wide(), w.shape(0, 2, 12)
    names = w.pick(("alpha x", "shape_parameter value", "concentration level", "k time")).split()
    a, b = (w.array(name, dtype, shape, "positive") for name in names)
    w.blocked(a, b)
    label, text = w.pick(CDFS)
    rates = w.let("rates", calm(w, w.make(f"{b} * {w.pick(('1.5', '0.8', '2.0'))}", b)))
    kind = w.pick(("grad", "jvp", "value_and_grad", "direct"))
    function = w.name("cdf probability mass")
    if kind == "direct":
        w.words += ["igamma_slope"]
        slope = w.make(f"lax.igamma_grad_a({a}, {rates})", a, b, low=-2, high=2)
    elif kind == "jvp":
        w.transformations.add("jvp")
        with w.nested(f"{function}(order)"):
            w.line(f"return {text.format(a='order', b=rates)}")
        w.line(f"level, slope = jax.jvp({function}, ({a},), (jnp.ones_like({a}),))")
        slope = w.make(w.pick(("slope", "slope", "level + slope", "slope * level")), a)
    else:
        w.transformations.add("value_and_grad" if kind == "value_and_grad" else "grad")
        with w.nested(f"{function}(order)"):
            w.line(f"return jnp.sum({text.format(a='order', b=rates)})")
        if kind == "grad":
            slope = w.make(f"jax.grad({function})({a})", a)
        else:
            w.line(f"total, slope = jax.value_and_grad({function})({a})")
            slope = w.make(w.pick(("slope / (1.0 + total**2)", "slope + 0.1 * total")), a)
    w.words += [label, kind] if kind != "direct" else ["terms"]
    w.title = f"Differentiate {label.replace('_', ' ')} values by their shape parameter"
    slope = w.let("sensitivity", calm(w, slope.within(-6, 6)))
    leave(w, slope, [a, b], 4)


@template("eigenvalues of general matrices", "linear algebra", 2)
def eigenvalues(w: Writer) -> None:
    """Write functions of the eigenvalues of matrices that are not symmetric."""
    dtype, n = w.wide(), w.size(2, 8)
    batch = w.shape(1, 1, 4) if w.chance(0.25) else ()
    x = w.array("matrix operator jacobian generator", dtype, (*batch, n, n), "definite")
    coupling = w.array("coupling drift perturbation", dtype, (*batch, n, n), "unit")
    factor = w.pick(("0.1", "0.2", "0.3", "0.2j"))
    spectrum_type = complex_dtype(dtype)
    text = f"{x} + {factor} * {coupling}"
    system = w.let("system", w.make(text, x, coupling, low=-2, high=6))
    if factor == "0.2j":
        system = w.make(system.text, system, dtype=spectrum_type)
    kind = w.pick(("radius", "growth", "powers", "gap", "vectors", "trace", "stability"))
    if kind == "vectors":
        w.blocked(x)
        w.line(f"eigenvalues, vectors = jnp.linalg.eig({system})")
        weights = w.pick(("jnp.abs(vectors)", "jnp.square(jnp.abs(vectors))"))
        y = w.make(weights, system, dtype=dtype, low=0, high=1)
        y = w.let("participation", y)
        text = f"jnp.sum({y} * jnp.abs(eigenvalues)[..., None, :], axis=-1)"
        y = w.make(text, y, dtype=dtype, shape=(*batch, n), low=0, high=9)
    else:
        spectrum = w.make(f"jnp.linalg.eigvals({system})", system, dtype=spectrum_type)
        spectrum = w.let("eigenvalues spectrum", spectrum)
        text, shape = {
            "radius": (f"jnp.max(jnp.abs({spectrum}), axis=-1)", batch),
            "growth": (f"jnp.sort(jnp.real({spectrum}), axis=-1)", (*batch, n)),
            "powers": (f"jnp.real(jnp.mean({spectrum} ** 2, axis=-1))", batch),
            "gap": (f"jnp.ptp(jnp.abs({spectrum}), axis=-1)", batch),
            "trace": (f"jnp.real(jnp.mean(jnp.exp({spectrum} / 4.0), axis=-1))", batch),
            "stability": (f"jnp.sort(jnp.log(jnp.abs({spectrum}) + 0.1), axis=-1)", (*batch, n)),
        }[kind]
        text = text.replace(f"{spectrum} ** 2", f"{spectrum}**2")
        y = w.make(text, spectrum, dtype=real_dtype(spectrum_type), shape=shape, low=0, high=30)
    w.words += ["eigenvalue", kind, w.pick(("of_system", "of_matrix", "of_operator"))]
    w.title = f"Compute the {kind} of a system's eigenvalues"
    leave(w, calm(w, w.let("summary", y)), [], 4)


@template("reduced precision", "arithmetic", 2)
def reduced_precision(w: Writer) -> None:
    """Write arithmetic with values rounded to fewer bits."""
    dtype, shape = w.wide(), w.shape(1, 3, 24)
    x = w.array(DATA, dtype, shape)
    w.blocked(x)
    source = prepare(w, x, 1)
    source = w.let("source", calm(w, source))
    name, exponent, mantissa = w.pick(
        (("bfloat16", 8, 7), ("float16", 5, 10), ("tf32", 8, 10), ("float8", 5, 2))
    )
    bits = w.pick(
        (
            f"exponent_bits={exponent}, mantissa_bits={mantissa}",
            f"{exponent}, {mantissa}",
        )
    )
    w.words += [name, w.pick(("rounded", "emulated", "simulated"))]
    w.title = f"Round values to the precision of {name}"
    kind = w.pick(("error", "split", "product", "accumulate", "mapped"))
    w.words.append(kind)
    coarse = w.let("coarse", w.make(f"lax.reduce_precision({source}, {bits})", source))
    if kind == "error":
        y = w.make(f"jnp.abs({source} - {coarse})", source, coarse, low=0, high=1)
    elif kind == "split":
        rest = w.let("rest", w.make(f"{source} - {coarse}", source, low=-1, high=1))
        fine = w.let("fine", w.make(f"lax.reduce_precision({rest}, {bits})", rest))
        y = w.make(f"{coarse} + {fine}", source)
    elif kind == "product":
        weights = w.array("weights gains scale", dtype, shape[-1:])
        text = f"lax.reduce_precision({weights}, {bits})"
        rounded = w.let("rounded", w.make(text, weights))
        y = calm(w, w.make(f"{coarse} * {rounded}", coarse, rounded, low=-80, high=80))
    elif kind == "accumulate":
        text = f"lax.reduce_precision(jnp.cumsum({coarse}, axis=-1), {bits})"
        bound = coarse.bound * shape[-1]
        y = calm(w, w.make(text, coarse, low=-bound, high=bound))
    else:
        mapped = w.let("mapped", calm(w, chain(w, coarse, w.between(1, 2))))
        y = w.make(f"lax.reduce_precision({mapped}, {bits})", mapped)
    leave(w, w.let("result", y), [x], 4)
