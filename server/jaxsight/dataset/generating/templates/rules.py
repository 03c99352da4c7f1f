"""Templates of custom derivatives, checkpoints and other calls that wrap functions."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import binary, chain
from jaxsight.dataset.generating.layout import wrapped as wrapped_text
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave
from jaxsight.dataset.generating.templates.gradients import body
from jaxsight.dataset.generating.types import Value
from jaxsight.dataset.generating.writer import Writer

FUNCTIONS = (
    ("softsign", "x / (1.0 + jnp.abs(x))", "1.0 / (1.0 + jnp.abs(x)) ** 2", 1.0),
    ("swish", "x * jax.nn.sigmoid(x)", "jax.nn.sigmoid(x) * (1 + x * jax.nn.sigmoid(-x))", 5.0),
    ("log1pexp", "jnp.logaddexp(x, 0.0)", "jax.nn.sigmoid(x)", 6.0),
    ("safe_sqrt", "jnp.sqrt(jnp.abs(x) + 0.1)", "0.5 / jnp.sqrt(jnp.abs(x) + 0.1)", 3.0),
    ("hard_step", "jnp.where(x > 0.0, 1.0, 0.1) * x", "jnp.where(x > 0.0, 1.0, 0.1)", 5.0),
    ("soft_clip", "jnp.tanh(x)", "1.0 - jnp.tanh(x) ** 2", 1.0),
    ("bump", "jnp.exp(-jnp.square(x))", "-2.0 * x * jnp.exp(-jnp.square(x))", 1.0),
    ("cube", "0.1 * x**3", "0.3 * x**2", 12.0),
    ("wave", "jnp.sin(2.0 * x)", "2.0 * jnp.cos(2.0 * x)", 1.0),
    ("leaky", "jnp.maximum(x, 0.1 * x)", "jnp.where(x > 0.0, 1.0, 0.1)", 5.0),
)


def use(w: Writer, name: str, x: Value, sources: list[Value], bound: float) -> None:
    """Write calls of a function with a rule of its own, and the rest of the program."""
    before = calm(w, chain(w, x, w.between(0, 2)), 5)
    before = w.short(before, "inner", 40)
    call = w.make(f"{name}({before})", before, *sources, low=-bound, high=bound)
    y = w.let("activated", call)
    if w.chance(0.35):
        again = w.make(f"{name}(0.5 * {y})", y, low=-bound, high=bound)
        y = w.let("twice", again)
    kind = w.pick(("value", "grad", "vmap", "plain"))
    if kind == "grad" and x.dtype in ("float32", "float64"):
        w.transformations.add("grad")
        text = f"jax.grad(lambda u: jnp.sum({name}(u)))({x})"
        slope = w.let("slope", w.make(text, x, low=-9, high=9))
        y = w.let("sum_of_both", binary(w, y, slope))
    elif kind == "vmap" and x.rank:
        w.transformations.add("vmap")
        text = f"jax.vmap({name})({x})"
        other = w.let("mapped", w.make(text, x, low=-bound, high=bound))
        y = w.let("sum_of_both", binary(w, y, other))
    y = w.let("total", w.make(f"{y} + 0.1 * jnp.sin({x})", y, x, low=y.low - 1, high=y.high + 1))
    leave(w, calm(w, y), [x], 3)


@template("custom_jvp", "custom rules", 3)
def custom_jvp(w: Writer) -> None:
    """Write a function with a rule for forward derivatives."""
    name, value, slope, bound = w.pick(FUNCTIONS)
    form = w.pick(("defjvps", "defjvp"))
    w.transformations.add("custom_jvp")
    with w.helper(f"{name}(x)", "@jax.custom_jvp", doc=w.pick(("", f"Return the {name} of x."))):
        w.line(f"return {value}")
    if form == "defjvp":
        decorated = f"@{name}.defjvp"
        with w.helper(f"{name}_jvp(primals, tangents)", decorated):
            w.line("(x,) = primals")
            w.line("(tangent,) = tangents")
            w.line(f"slope = {slope}")
            w.line(f"return {name}(x), slope * tangent")
    else:
        text = f"{name}.defjvps(lambda tangent, answer, x: tangent * ({slope}))"
        w.block("\n".join(wrapped_text(text, 0)))
    x = w.array("x inputs logits", w.floating(), w.shape(0, 4, 16))
    w.words += [name, "with_jvp", w.pick(("rule", "layer", "activation"))]
    w.title = f"Apply {name} with its own rule for forward derivatives"
    use(w, name, x, [], bound)


@template("custom_vjp", "custom rules", 3)
def custom_vjp(w: Writer) -> None:
    """Write a function with a rule for reverse derivatives."""
    name, value, slope, bound = w.pick(FUNCTIONS)
    w.transformations.add("custom_vjp")
    scaled = w.chance(0.3)
    parameters = "x, scale" if scaled else "x"
    with w.helper(f"{name}({parameters})", "@jax.custom_vjp"):
        w.line(f"return {'scale * (' if scaled else ''}{value}{')' if scaled else ''}")
    with w.helper(f"{name}_fwd({parameters})"):
        w.line(f"return {name}({parameters}), {'(x, scale)' if scaled else 'x'}")
    residual = "residuals" if scaled else "x"
    with w.helper(f"{name}_bwd({residual}, cotangent)"):
        if scaled:
            w.line("x, scale = residuals")
            w.line(f"slope = {slope}")
            w.line(f"scale_bar = jnp.sum(cotangent * ({value}))")
            w.line("return cotangent * scale * slope, scale_bar.astype(scale.dtype)")
        else:
            w.line(f"slope = {slope}")
            clip = w.pick(("cotangent * slope", "jnp.clip(cotangent, -1.0, 1.0) * slope"))
            w.line(f"return ({clip},)")
            if "clip" in clip:
                w.labels.add("own-derivative")
    w.block(f"{name}.defvjp({name}_fwd, {name}_bwd)")
    x = w.array("x inputs logits", w.floating(), w.shape(0, 4, 16))
    w.words += [name, "with_vjp", w.pick(("rule", "layer", "activation"))]
    w.title = f"Apply {name} with its own rule for reverse derivatives"
    if scaled:
        s = w.array("scale gain", x.dtype, ())
        y = w.let(
            "activated", w.make(f"{name}({x}, {s})", x, s, low=-bound * 4.5, high=bound * 4.5)
        )
        y = w.let("shifted", w.make(f"{y} + 0.1 * {x}", y, x))
        leave(w, calm(w, y), [x], 4)
        return
    use(w, name, x, [], bound)


@template("checkpoint", "custom rules", 3)
def checkpoint(w: Writer) -> None:
    """Write a function whose intermediates are computed again for derivatives."""
    dtype = w.floating()
    shape = w.shape(0, 3, 12)
    x = w.array("x inputs hidden", dtype, shape)
    other = w.array("weights scale bias", dtype, shape)
    name = w.name("block layer stage")
    kind = w.pick(("plain", "policy", "partial", "named", "remat"))
    decorator = {
        "plain": "@jax.checkpoint",
        "named": "@jax.checkpoint",
        "remat": "@jax.remat",
    }.get(kind)
    if kind in ("policy", "partial"):
        w.imported("from functools import partial")
        policy = w.pick(("dots_saveable", "everything_saveable", "nothing_saveable"))
        decorator = f"@partial(jax.checkpoint, policy=jax.checkpoint_policies.{policy})"
    with w.helper(f"{name}(u, v)", decorator or ""):
        one = Value("u", dtype, shape, -4.5, 4.5, True)
        value = body(w, [one, Value("v", dtype, shape, -4.5, 4.5, True)])
        if kind == "named":
            w.imported("from jax.ad_checkpoint import checkpoint_name")
            value = w.let("activated", w.make(f'checkpoint_name({value}, "{name}_out")', value))
        w.line(f"return {w.hoisted(value.text)}")
    w.transformations.add("checkpoint")
    y = w.let("hidden_values", w.make(f"{name}({x}, {other})", x, other, low=-20, high=20))
    if w.chance(0.5):
        y = w.let("again", w.make(f"{name}({y}, {other})", y, other, low=-20, high=20))
    if w.chance(0.5):
        w.transformations.add("grad")
        text = f"jax.grad(lambda u: jnp.mean({name}(u, {other})))({x})"
        slope = w.let("slope", w.make(text, x, other, low=-9, high=9))
        y = w.let("mixed", binary(w, calm(w, y), slope))
    w.words += ["rematerialised", name, kind]
    w.title = f"Apply a {name} whose intermediates are recomputed for derivatives"
    y = w.let("total", w.make(f"{y} + 0.1 * {x}", y, x, low=-60, high=60))
    leave(w, calm(w, y), [x, other], 3)


@template("wrapped calls", "custom rules", 18)
def wrapped(w: Writer) -> None:
    """Write barriers, scopes, composites, callbacks and linear solves with rules."""
    dtype = w.wide()
    shape = w.shape(0, 3, 12)
    x = w.array("x inputs values", dtype, shape)
    y = w.short(chain(w, x, w.between(1, 2)), "inner", 30)
    y = w.let("mapped", w.make(f"{y.atom} + 0.5 * {x}", y, x, low=y.low - 3, high=y.high + 3))
    kind = w.pick(
        (
            "barrier",
            "scope",
            "composite",
            "callback",
            "callback",
            "stop",
            "copy",
            "device_put",
            "sink",
            "root",
            "platform",
            "linear_call",
            "empty",
            "empty",
            "stack",
            "order",
            "reshard",
        )
    )
    w.words += [kind, w.pick(("around", "wrapped", "inside")), w.pick(("values", "function"))]
    w.title = f"Compute values around a {kind.replace('_', ' ')}"
    if kind == "barrier":
        w.line(f"first, second = lax.optimization_barrier(({y}, {x}))")
        z = binary(w, calm(w, w.make("first", y)), w.make("second", x))
    elif kind == "scope":
        with w.branch('with jax.named_scope("stage")'):
            z = w.let("staged", calm(w, chain(w, y, w.between(1, 2))))
            z = w.let("shifted", w.make(f"{z} + 1.0", z))
    elif kind == "composite":
        w.blocked(x)
        w.imported("from functools import partial")
        with w.helper("squash(x)", '@partial(lax.composite, name="example.squash")'):
            w.line(f"return {w.pick(('jnp.tanh(x)', 'x / (1.0 + jnp.abs(x))', 'jnp.sin(x) * x'))}")
        z = w.make(f"squash({y})", y, low=-20, high=20)
    elif kind == "callback":
        w.imported("import numpy as np")
        w.blocked(x)
        with w.helper("on_host(x)", doc="Return a function of x, computed by NumPy."):
            w.line(f"return {w.pick(('np.tanh(x)', 'np.arctan(x)', 'np.sin(x)'))}.astype(x.dtype)")
        w.line(f"result_type = jax.ShapeDtypeStruct({y}.shape, {y}.dtype)")
        text = f'jax.pure_callback(on_host, result_type, {y}, vmap_method="sequential")'
        z = w.make(text, y, low=-2, high=2)
    elif kind == "stop":
        z = w.make(f"{y} * lax.stop_gradient(jnp.tanh({y}))", y)
    elif kind == "copy":
        form = w.pick(("jnp.array({y}, copy=True)", "jnp.copy({y})"))
        z = w.make(form.format(y=y), y)
    elif kind == "device_put":
        z = w.make(f"jax.device_put({y})", y)
    elif kind == "sink":
        w.line(f"lax.dce_sink({y})")
        z = w.make(f"jnp.sin({y})", y, low=-1, high=1)
    elif kind == "root":
        with w.nested("residual(v)"):
            w.line(f"return v + 0.5 * jnp.tanh(v) - {y}")
        with w.nested("solve_with(f, start)"):
            w.line(
                f"return lax.fori_loop(0, {w.between(8, 20)}, lambda _, v: v - 0.6 * f(v), start)"
            )
        with w.nested("tangent_solve(g, b)"):
            w.line("return b / g(jnp.ones_like(b))")
        text = f"lax.custom_root(residual, jnp.zeros_like({y}), solve_with, tangent_solve)"
        z = w.make(text, y)
    elif kind == "platform":
        with w.nested("on_cpu(v)"):
            w.line("return jnp.tanh(v)")
        with w.nested("elsewhere(v)"):
            w.line("return lax.tanh(v)")
        z = w.make(f"lax.platform_dependent({y}, cpu=on_cpu, default=elsewhere)", y, low=-1, high=1)
    elif kind == "linear_call":
        with w.nested("forward(residual, v)"):
            w.line("return residual * v")
        with w.nested("transpose(residual, v)"):
            w.line("return residual * v")
        w.imported("from jax.custom_derivatives import linear_call")
        w.line(f"weights = lax.stop_gradient(jnp.tanh({y}))")
        z = w.make(f"linear_call(forward, transpose, weights, {x})", x, y)
    elif kind == "order":
        w.line("lax.after_all(lax.create_token())")
        z = w.make(f"jnp.cos({y}) + {y}", y, low=y.low - 1, high=y.high + 1)
    elif kind == "reshard":
        w.imported("from jax.sharding import AxisType, NamedSharding, PartitionSpec")
        w.block('MESH = jax.make_mesh((1,), ("data",), axis_types=(AxisType.Explicit,))')
        axes = w.pick(("()", "(None)")) if shape else "()"
        w.line(f"sharding = NamedSharding(MESH, PartitionSpec{axes})")
        z = w.make(f"jax.reshard({y}, sharding)", y)
    elif kind == "empty":
        z = w.make(f"jnp.empty_like({y}).at[...].set({y})", y)
    else:
        w.line(f"both = jnp.stack([{y}, {x}])")
        w.line("first, second = jnp.unstack(both * both)")
        z = w.make("first - jnp.tanh(second)", y, x, low=-1, high=y.bound**2)
    z = w.let("result", z)
    z = w.let("total", w.make(f"{z} + 0.1 * {x}", z, x))
    leave(w, calm(w, z), [x], 4)
