"""Templates of what costs tracing or compiling, or surprises a caller: JX104, JX209, JX3, JX412."""

from __future__ import annotations

from jaxsight.dataset.generating.improvable.steps import finished, floats, prepared, titled
from jaxsight.dataset.generating.writer import Writer

CATEGORY = "programs"


def jx104_regular(w: Writer) -> None:
    """Write a product with a sequence that NumPy makes."""
    n = w.pick((5000, 8000, 9999, 12000))
    x = prepared(w, floats(w, (n,)))
    w.imported("import numpy as np")
    first = w.between(0, 3)
    titled(w, w.pick(("ramp", "trend", "moment")), "Weigh values by their positions")
    finished(w, f"{x} * np.arange({first}, {n + first})")


def jx209_unrolled(w: Writer) -> None:
    """Write a Python loop over the same layer."""
    n, times = w.size(8, 48), w.between(17, 32)
    x = floats(w, (n,), "x state hidden")
    weights = floats(w, (n, n), "weights transition mixing")
    x = prepared(w, x)
    titled(w, w.pick(("iterate", "relax", "power_steps")), f"Apply a layer {times} times")
    with w.branch(f"for i in range({times})"):
        form = w.pick(("jnp.tanh({x} @ {w})", "jnp.sin({x} @ {w}) * i", "jnp.cos({x} @ {w} + i)"))
        w.line(f"{x} = {form.format(x=x, w=weights)}")
    w.line(f"return {x}")


def jx301_weak(w: Writer) -> None:
    """Write a result whose dtype comes from Python numbers alone."""
    x = floats(w, (), "x reward level price")
    low, high = w.between(0, 5) / 2, w.between(6, 20) / 2
    test = w.pick((f"{x} > {low}", f"jnp.sin({x}) > 0", f"jnp.abs({x}) < {high}"))
    titled(w, w.pick(("bonus", "rate", "penalty")), "Choose one of two numbers")
    w.line(f"return jnp.where({test}, {low}, {high})")


def jx303_recreated(w: Writer) -> None:
    """Write a jitted lambda inside of a function."""
    x = prepared(w, floats(w, w.shape(1, 2, 48)))
    body = w.pick(("v + {}", "jnp.sin(v) * {}", "v**2 - {}", "jnp.tanh(v / {})"))
    titled(w, w.pick(("compiled", "fast", "jitted")), "Jit a function and call it")
    w.transformations.add("jit")
    finished(w, f"jax.jit(lambda v: {body.format(w.between(1, 9))})({x})")


def jx304_truncated(w: Writer) -> None:
    """Write a 64-bit dtype where there are none."""
    n = w.size(4, 48)
    x = prepared(w, floats(w, (n,)))
    make = w.pick(("jnp.zeros({n}, jnp.float64)", "jnp.ones({n}, jnp.float64)"))
    titled(w, w.pick(("offset", "accumulate", "baseline")), "Start from an array of 64-bit numbers")
    w.line(f"start = {make.format(n=n)}")
    finished(w, f"start + {x}")


def jx412_dead(w: Writer) -> None:
    """Write a value that nothing reads."""
    x = prepared(w, floats(w, (w.size(4, 48), w.size(4, 48))))
    unused = w.pick(("jnp.sin({})", "jax.nn.logsumexp({}, axis=-1)", "jnp.exp({})"))
    titled(w, w.pick(("forget", "pass_on", "normalize")), "Compute more than is returned")
    name = w.name("statistics total history debug")
    w.line(f"# {name} of all rows")  # a mention keeps the writer from dropping the assignment
    w.line(f"{name} = {unused.format(x)}")
    finished(w, f"{x} - jnp.mean({x})")


TEMPLATES = (
    jx104_regular,
    jx209_unrolled,
    jx301_weak,
    jx303_recreated,
    jx304_truncated,
    jx412_dead,
)
