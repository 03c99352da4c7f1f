"""Templates of work that another form saves: JX213 to JX220."""

from __future__ import annotations

from jaxsight.dataset.generating.improvable.steps import finished, floats, prepared, titled
from jaxsight.dataset.generating.writer import Writer

CATEGORY = "wasted work"


def jx213_inverse(w: Writer) -> None:
    """Write a product with an inverse."""
    n = w.size(4, 32)
    a = floats(w, (n, n), "covariance stiffness matrix precision", "definite")
    b = floats(w, w.pick(((n,), (n, 3), (n, 5))), "b rhs target load")
    b = prepared(w, b)
    titled(w, w.pick(("solve", "whiten", "correct")), "Apply the inverse of a matrix")
    if w.chance(0.5):
        w.line(f"inverse = jnp.linalg.inv({a})")
        finished(w, f"inverse @ {b}")
    else:
        finished(w, f"jnp.linalg.inv({a}) @ {b}")


def jx214_diagonal(w: Writer) -> None:
    """Write a product with a diagonal matrix."""
    rows, columns = w.size(8, 64), w.size(8, 64)
    a, right = floats(w, (rows, columns)), w.chance(0.5)
    d = floats(w, (columns if right else rows,), "scales gains weights")
    a = prepared(w, a)
    titled(w, w.pick(("scale_axis", "weigh", "rescale")), "Scale an axis of a matrix")
    finished(w, f"{a} @ jnp.diag({d})" if right else f"jnp.diag({d}) @ {a}")


def jx214_trace(w: Writer) -> None:
    """Write the trace of a product."""
    shape = (w.size(8, 64), w.size(8, 64))
    a, b = floats(w, shape), floats(w, shape, "other reference kernel")
    a = prepared(w, a)
    titled(w, w.pick(("similarity", "overlap", "inner")), "Compute the trace of a product")
    if w.chance(0.5):
        w.line(f"product = {a} @ {b}.T")
        finished(w, "jnp.trace(product)")
    else:
        finished(w, f"jnp.trace({a} @ {b}.T)")


def jx214_chain(w: Writer) -> None:
    """Write a chain of products that is cheaper from the right."""
    n = w.pick((128, 192, 256, 320))
    a = floats(w, (n, n), "a outer first")
    b, x = floats(w, (n, n), "b inner second"), floats(w, (n,), "x state vector")
    x = prepared(w, x)
    titled(w, w.pick(("propagate", "project", "transport")), "Apply two matrices to a vector")
    finished(w, f"{a} @ {b} @ {x}")


def jx215_sorted(w: Writer) -> None:
    """Write a sort of which the extreme values are read."""
    n, k = w.pick((500, 1000, 2000, 4000)), w.between(2, 12)
    rows = w.pick((None, 4, 8))
    x = prepared(w, floats(w, (n,) if rows is None else (rows, n)))
    titled(w, w.pick(("largest", "peaks", "extremes")), "Find extreme values")
    if rows is None:
        finished(w, w.pick((f"jnp.sort({x})[-{k}:]", f"jnp.sort({x})[-1]", f"jnp.sort({x})[0]")))
    else:
        end = w.pick(("-1", "0"))
        finished(w, f"jnp.sort({x}, axis=-1)[..., {end}]")


def jx217_cumulative(w: Writer) -> None:
    """Write a cumulative sum of which the last value is read."""
    shape = (w.size(4, 32), w.pick((50, 100, 200)))
    x = prepared(w, floats(w, shape))
    titled(w, w.pick(("total", "balance", "distance")), "Add up the steps of series")
    finished(w, f"jnp.cumsum({x}, axis=1)[:, -1]")


def jx217_carried(w: Writer) -> None:
    """Write a scan whose last output is its final carry."""
    n, size = w.pick((20, 50, 100)), w.size(4, 32)
    xs = floats(w, (n, size), "xs inputs observations")
    titled(w, w.pick(("encode", "filter", "recur")), "Run a recurrence, and return its last state")
    xs = prepared(w, xs)
    with w.nested("step(h, x)"):
        w.line(f"h = jnp.tanh({w.pick(('h + x', '0.9 * h + x', 'h * 0.5 - x'))})")
        w.line("return h, h")
    w.line(f"_, states = lax.scan(step, jnp.zeros({size}), {xs})")
    finished(w, "states[-1]")


def jx218_spectrum(w: Writer) -> None:
    """Write half of the spectrum of a real signal."""
    n = w.pick((64, 128, 256, 512, 1024))
    x = prepared(w, floats(w, (n,), "signal waveform samples"))
    titled(w, w.pick(("spectrum", "magnitudes", "power")), "Compute the spectrum of a real signal")
    w.line(f"modes = jnp.fft.fft({x})")
    finished(w, f"jnp.abs(modes[:{n // 2}])")


def jx218_convolved(w: Writer) -> None:
    """Write a convolution by complex FFTs."""
    n = w.pick((64, 128, 256, 512))
    a = floats(w, (n,), "signal waveform samples")
    b = floats(w, (n,), "kernel window response")
    a = prepared(w, a)
    titled(w, w.pick(("convolve", "blur", "smooth_out")), "Convolve two real signals")
    finished(w, f"jnp.real(jnp.fft.ifft(jnp.fft.fft({a}) * jnp.fft.fft({b})))")


def jx220_branches(w: Writer) -> None:
    """Write a selection between two costly results by one flag."""
    n = w.pick((48, 64, 96, 128))
    flag = w.array("flag warm use_first", "bool", ()).text
    x = floats(w, (n, n))
    a, b = floats(w, (n, n), "a left first"), floats(w, (n, n), "b right second")
    x = prepared(w, x)
    titled(w, w.pick(("choose", "switch", "either")), "Select one of two products")
    finished(w, f"jnp.where({flag}, {x} @ {a}, {x} @ {b})")


TEMPLATES = (
    jx213_inverse,
    jx214_diagonal,
    jx214_trace,
    jx214_chain,
    jx215_sorted,
    jx217_cumulative,
    jx217_carried,
    jx218_spectrum,
    jx218_convolved,
    jx220_branches,
)
