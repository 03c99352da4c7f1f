"""Templates of programs that consist of several functions."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import binary, chain
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, normalised, reduced
from jaxsight.dataset.generating.templates.gradients import smooth_tree
from jaxsight.dataset.generating.types import Value, power
from jaxsight.dataset.generating.writer import Writer

CATEGORY = "helper functions"


def elementwise_helper(
    w: Writer, names: str, dtype: str, shape: tuple[int, ...], count: int
) -> str:
    """Write a helper of arrays of one shape, and return its name."""
    name = w.name(names)
    locals_ = [Value(part, dtype, shape, -4.5, 4.5, True) for part in ("x", "y", "z")[:count]]
    decorator = ["@jax.jit"] if w.chance(0.3) else []
    if decorator:
        w.transformations.add("jit")
    doc = w.pick(("", f"Return the {name} of its arguments."))
    with w.helper(f"{name}({', '.join(each.text for each in locals_)})", *decorator, doc=doc):
        value = w.short(smooth_tree(w, locals_, w.between(1, 3)), "inner", 40)
        for each in locals_:
            value = w.short(w.make(f"{value.atom} + 0.2 * {each}", value), "shifted", 50)
        if shape and w.chance(0.3):
            normal, kind = normalised(w, value)
            value = w.let(kind, normal)
            value = w.make(power(value.text, 2), value, low=0, high=60)
        w.line(f"return {w.hoisted(calm(w, value).text)}")
    return name


@template("pipeline of helpers", CATEGORY, 4)
def pipeline(w: Writer) -> None:
    """Write several helpers and a function that calls them in turn."""
    dtype, shape = w.floating(), w.shape(0, 3, 12)
    x = w.array("x signal inputs", dtype, shape)
    other = w.array("reference weights bias", dtype, shape)
    words = []
    y = x
    for _ in range(w.between(1, 4)):
        count = w.between(1, 2)
        name = elementwise_helper(
            w, "smooth sharpen rescale warp encode blend tune shape_up", dtype, shape, count
        )
        words.append(name)
        call = f"{name}({y}{f', {other}' if count == 2 else ''})"
        y = w.let("stage output hidden", w.make(call, y, x, other, low=-40, high=40))
        if w.chance(0.2):
            y = w.let("again", w.make(f"{name}({y}{f', {x}' if count == 2 else ''})", y))
    y = w.let("result", w.make(f"{y} - 0.5 * {other}", y, other))
    w.words += words[:3] or ["pipeline"]
    w.title = f"Apply {', then '.join(words)}"
    leave(w, calm(w, y), [x, other], 3)


@template("jitted helper", CATEGORY, 3)
def jitted(w: Writer) -> None:
    """Write calls of jitted helpers with static arguments."""
    dtype, shape = w.floating(), w.shape(1, 3, 12)
    x = w.array("x values samples", dtype, shape)
    name = w.name("summarize rescale transform_by")
    w.imported("from functools import partial")
    kind = w.pick(("axis", "mode", "power", "inline"))
    w.transformations.add("jit")
    static = {"axis": "axis", "mode": "mode", "power": "degree", "inline": "scale"}[kind]
    inline = ", inline=True" if kind == "inline" else ""
    decorator = f'@partial(jax.jit, static_argnames=("{static}",){inline})'
    with w.helper(f"{name}(x, {static})", decorator, doc=w.pick(("", "Return a summary of x."))):
        local = Value("x", dtype, shape, -4.5, 4.5, True)
        inner = w.short(calm(w, chain(w, local, w.between(0, 2))), "inner", 30)
        if kind == "axis":
            w.line(f"return jnp.{w.pick(('mean', 'max', 'min', 'sum'))}({inner}, axis=axis) / 4.0")
        elif kind == "mode":
            with w.branch('if mode == "soft"'):
                w.line(f"return jax.nn.softplus({inner})")
            w.line(f"return jnp.maximum({inner}, 0.1 * {inner})")
        elif kind == "power":
            w.line(f"result = {inner}")
            with w.branch("for _ in range(degree)"):
                w.line("result = jnp.tanh(result) + 0.5 * x")
            w.line("return result")
        else:
            w.line(f"return scale * {inner.atom} + x")
    if kind == "axis":
        axis = w.between(0, len(shape) - 1)
        shape2 = shape[:axis] + shape[axis + 1 :]
        y = w.let("summary", w.make(f"{name}({x}, {axis})", x, shape=shape2, low=-40, high=40))
        other = w.let(
            "whole", w.make(f"{name}(jnp.tanh({x}), {axis})", x, shape=shape2, low=-9, high=9)
        )
        y = w.let("both", binary(w, calm(w, y), other))
    else:
        values = {"mode": ('"soft"', '"leaky"'), "power": ("2", "3"), "inline": ("0.5", "2.0")}[
            kind
        ]
        y = w.let("first", w.make(f"{name}({x}, {values[0]})", x, low=-20, high=20))
        other = w.let("second", w.make(f"{name}({x}, {values[1]})", x, low=-20, high=20))
        y = w.let("both", binary(w, y, other))
    w.words += [name, "by", static]
    w.title = f"Call a jitted function with static {static}s"
    leave(w, calm(w, y), [], 4)


@template("recursive helper", CATEGORY, 2)
def recursive(w: Writer) -> None:
    """Write a helper that calls itself on halves or with a smaller depth."""
    dtype = w.floating()
    n = w.pick((4, 8, 16))
    x = w.array("x values series", dtype, (*w.shape(0, 1, 6), n))
    kind = w.pick(("halves", "depth", "butterfly"))
    w.words += ["recursive", kind, w.pick(("reduction", "transform", "mixing"))]
    w.title = f"Transform values recursively by {kind}"
    name = w.name("combine_halves refine fold_up")
    pairs = w.pick(
        (
            "jnp.maximum(left, right)",
            "0.5 * (left + right)",
            "left * jnp.tanh(right)",
            "jnp.logaddexp(left, right)",
            "jnp.sin(left) + jnp.cos(right)",
        )
    )
    if kind == "halves":
        with w.helper(
            f"{name}(values)", doc="Combine the halves of the last axis until one is left."
        ):
            w.line("size = values.shape[-1]")
            with w.branch("if size == 1"):
                w.line("return values[..., 0]")
            w.line("left = values[..., : size // 2]")
            w.line("right = values[..., size // 2 :]")
            w.line(f"return {name}({pairs})")
        y = w.make(f"{name}({x})", x, shape=x.shape[:-1], low=-12, high=12)
    elif kind == "depth":
        with w.helper(f"{name}(values, depth)"):
            with w.branch("if depth == 0"):
                w.line("return values")
            local = Value("values", dtype, x.shape, -4.5, 4.5, True)
            inner = w.short(smooth_tree(w, [local], w.between(1, 2)), "inner", 40)
            w.line(f"updated = 0.5 * values + jnp.tanh({inner})")
            w.line(f"return {name}(updated, depth - 1)")
        y = w.make(f"{name}({x}, {w.between(2, 5)})", x, low=-6, high=6)
    else:
        with w.helper(f"{name}(values)", doc="Mix the halves of the last axis at all scales."):
            w.line("size = values.shape[-1]")
            with w.branch("if size == 1"):
                w.line("return values")
            w.line("left = values[..., : size // 2]")
            w.line("right = values[..., size // 2 :]")
            w.line(f"low = {name}(0.5 * (left + right))")
            w.line(f"high = {name}(0.5 * (left - right))")
            w.line("return jnp.concatenate([low, high], axis=-1)")
        y = w.make(f"{name}({x})", x, low=-5, high=5)
    leave(w, w.let("transformed", y), [], 4)


@template("function of functions", CATEGORY, 3)
def higher_order(w: Writer) -> None:
    """Write functions that take, make or compose functions."""
    dtype, shape = w.floating(), w.shape(0, 3, 12)
    x = w.array("x start inputs", dtype, shape)
    kind = w.pick(("compose", "repeat", "factory", "residual", "partial"))
    parts = [
        elementwise_helper(w, "bend twist squeeze lift tilt", dtype, shape, 1) for _ in range(2)
    ]
    w.words += [kind, *parts]
    w.title = f"Build a function with {kind} from {' and '.join(parts)}"
    if kind == "compose":
        with w.helper(
            "compose(*functions)", doc="Return the functions applied from right to left."
        ):
            with w.nested("composed(x)"):
                with w.branch("for function in reversed(functions)"):
                    w.line("x = function(x)")
                w.line("return x")
            w.line("return composed")
        order = [w.pick(parts) for _ in range(w.between(2, 4))]
        y = w.make(f"compose({', '.join(order)})({x})", x, low=-40, high=40)
        unused = [part for part in parts if part not in order]
        if unused:
            y = w.make(f"compose({', '.join([*order, *unused])})({x})", x, low=-40, high=40)
    elif kind == "repeat":
        with w.helper("repeat(function, x, count)", doc="Return the function applied count times."):
            with w.branch("for _ in range(count)"):
                w.line("x = jnp.tanh(function(x))")
            w.line("return x")
        first = w.let(
            "first", w.make(f"repeat({parts[0]}, {x}, {w.between(1, 3)})", x, low=-1, high=1)
        )
        y = binary(
            w,
            first,
            w.let(
                "second", w.make(f"repeat({parts[1]}, {x}, {w.between(1, 3)})", x, low=-1, high=1)
            ),
        )
    elif kind == "factory":
        with w.helper("make_layer(function, scale)", doc="Return a scaled version of a function."):
            with w.nested("layer(x)"):
                w.line(f"return scale * function(x) + {w.pick(('x', '0.5 * x', 'jnp.sin(x)'))}")
            w.line("return layer")
        w.line(f"first_layer = make_layer({parts[0]}, {w.pick((0.5, 2.0, 0.1))})")
        w.line(f"second_layer = make_layer({parts[1]}, {w.pick((0.5, 1.5, 0.1))})")
        y = w.make(f"second_layer(jnp.tanh(first_layer({x})))", x, low=-60, high=60)
    elif kind == "partial":
        w.imported("from functools import partial")
        with w.helper("blend(function, x, weight=0.5)", doc="Blend x with a function of it."):
            w.line("return weight * function(x) + (1.0 - weight) * x")
        w.line(f"first_blend = partial(blend, {parts[0]}, weight={w.pick((0.1, 0.3, 0.7))})")
        y = w.make(f"first_blend(jnp.tanh(blend({parts[1]}, {x})))", x, low=-40, high=40)
    else:
        with w.helper("with_residual(function, x)", doc="Return x plus a bounded function of it."):
            w.line(f"return x + {w.pick((0.1, 0.5, 1.0))} * jnp.tanh(function(x))")
        w.line(f"hidden = with_residual({parts[0]}, {x})")
        y = w.make(f"with_residual({parts[1]}, hidden)", x, low=-8, high=8)
    y = w.let("outcome", y)
    leave(w, calm(w, y), [x], 3)


@template("constants and helpers", CATEGORY, 3)
def constants(w: Writer) -> None:
    """Write helpers that use constants of the module."""
    dtype = w.floating()
    n = w.between(2, 5)
    shape = (*w.shape(0, 2, 10), n)
    x = w.array("x points rows", dtype, shape)
    numbers = [w.pick((0.25, 0.5, 1.0, 1.5, -0.5, 2.0, -1.0)) for _ in range(n)]
    w.block(f"WEIGHTS = ({', '.join(map(str, numbers))})\nRATE = {w.pick((0.1, 0.5, 2.0))}")
    name = w.name("weigh project score")
    with w.helper(f"{name}(x)", doc=w.pick(("", "Weigh the last axis with the constants."))):
        w.line("weights = jnp.array(WEIGHTS, x.dtype)")
        form = w.pick(("x * weights", "x + RATE * weights", "jnp.tanh(x) * weights", "x - weights"))
        value = Value(form, dtype, shape, -12, 12, True)
        value = w.let("weighted", value)
        value = calm(w, chain(w, value, w.between(0, 2)))
        w.line(f"return {w.hoisted(value.text)}")
    y = w.let("scored", w.make(f"{name}({x})", x, low=value.low, high=value.high))
    y = w.let("updated", w.make(f"{y} + RATE * jnp.sin({x})", y, x, low=y.low - 2, high=y.high + 2))
    if w.chance(0.5):
        value, names = reduced(w, y, -1)
        y = w.let(names, value)
    w.words += [name, "with_constants"]
    w.title = f"{name.capitalize()} rows with constants of the module"
    leave(w, y, [x], 4)
