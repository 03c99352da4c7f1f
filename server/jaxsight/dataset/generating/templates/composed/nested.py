"""Templates of transformations inside of each other."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import binary, chain
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, reduced
from jaxsight.dataset.generating.templates.gradients import body, smooth_tree
from jaxsight.dataset.generating.templates.loops import contraction
from jaxsight.dataset.generating.types import Value
from jaxsight.dataset.generating.writer import Writer

CATEGORY = "nested transformations"


def scalar_function(w: Writer, name: str, dtype: str, shapes: list[tuple[int, ...]]) -> None:
    """Write a smooth scalar function of arrays, named u, v and t."""
    locals_ = [
        Value(part, dtype, shape, -4.5, 4.5, True)
        for part, shape in zip("uvt", shapes, strict=False)
    ]
    head = f"{name}({', '.join(each.text for each in locals_)})"
    with w.nested(head) if w.chance(0.5) else w.helper(head):
        x = w.let("terms", body(w, locals_))
        if x.rank:
            form = w.pick(
                ("jnp.mean({x}**2)", "jnp.sum(jnp.sin({x}))", "jnp.mean(jnp.tanh({x}) * {x})")
            )
        else:
            form = w.pick(("{x}**2", "jnp.sin({x})", "jnp.tanh({x}) * {x}"))
        w.line(f"return {form.format(x=x)}")


@template("gradients of examples", CATEGORY, 3)
def per_example(w: Writer) -> None:
    """Write `vmap` of a gradient, and what is done with the gradients."""
    dtype = w.floating()
    batch, shape = w.size(2, 8), w.shape(0, 2, 6)
    params = w.array("params theta weights", dtype, shape)
    xs = w.array("xs inputs examples", dtype, (batch, *shape))
    name = w.name("loss energy objective")
    scalar_function(w, name, dtype, [shape, shape])
    kind = w.pick(("grad", "value_and_grad", "jit", "argnums"))
    w.transformations |= {"vmap", "value_and_grad" if kind == "value_and_grad" else "grad"}
    transformation = "value_and_grad" if kind == "value_and_grad" else "grad"
    inner = f"jax.{transformation}({name}{', argnums=1' if kind == 'argnums' else ''})"
    if kind == "jit":
        inner = f"jax.jit({inner})"
        w.transformations.add("jit")
    call = f"jax.vmap({inner}, in_axes=(None, 0))({params}, {xs})"
    if kind == "value_and_grad":
        w.line(f"values, grads = {call}")
    else:
        w.line(f"grads = {call}")
    w.names |= {"values", "grads"}
    grads = w.make("grads", params, xs, shape=(batch, *shape), low=-40, high=40)
    y, names = reduced(w, w.let("clipped", calm(w, grads, 20)), w.pick((0, None)))
    y = w.let(names, y)
    if kind == "value_and_grad":
        y = w.let("weighted", w.make(f"{y} + jnp.mean(values)", y, low=-60, high=60))
    y = w.let("shifted", w.make(f"{y} + 0.1 * jnp.mean(grads)", y, grads, low=-60, high=60))
    if w.chance(0.4) and y.shape == shape:
        y = w.let("stepped", w.make(f"{params} - 0.1 * {y}", params, y, low=-12, high=12))
    w.words += ["per_example", name, kind]
    w.title = f"Compute the gradients of a {name} for each example"
    leave(w, calm(w, y), [params] if y.shape == shape else [], 3)


@template("derivatives of derivatives", CATEGORY, 3)
def higher(w: Writer) -> None:
    """Write gradients of gradients, and mixed modes."""
    dtype = w.wide()
    shape = w.shape(0, 1, 8)
    x, y = w.array("x point", dtype, shape), w.array("y other", dtype, shape)
    name = w.name("potential energy function")
    scalar_function(w, name, dtype, [shape, shape])
    kind = w.pick(("grad_grad", "grad_norm", "jvp_grad", "jacfwd_grad", "vjp_jvp", "jit_grad"))
    w.transformations.add("grad")
    if kind == "grad_grad":
        with w.nested("slope_sum(u)"):
            w.line(f"return jnp.sum(jnp.sin(jax.grad({name})(u, {y})))")
        z = w.make(f"jax.grad(slope_sum)({x})", x, y, low=-90, high=90)
    elif kind == "grad_norm":
        with w.nested("penalty(u)"):
            w.line(f"slope = jax.grad({name})(u, {y})")
            w.line("return jnp.sum(slope**2) + jnp.sum(u)")
        z = w.make(f"jax.grad(penalty)({x})", x, y, low=-90, high=90)
    elif kind == "jvp_grad":
        w.transformations.add("jvp")
        text = f"jax.jvp(jax.grad({name}), ({x}, {y}), ({y}, {x}))[1]"
        z = w.make(text, x, y, low=-90, high=90)
    elif kind == "jacfwd_grad":
        w.transformations.add("jacfwd")
        z = w.make(
            f"jax.jacfwd(jax.grad({name}), argnums=1)({x}, {y})",
            x,
            y,
            shape=shape + shape,
            low=-90,
            high=90,
        )
    elif kind == "vjp_jvp":
        w.transformations |= {"jvp", "grad"}
        with w.nested("change(u)"):
            w.line(f"return jax.jvp(lambda v: {name}(u, v), ({y},), (u,))[1]")
        z = w.make(f"jax.grad(change)({x})", x, y, low=-90, high=90)
    else:
        w.transformations |= {"jit", "value_and_grad"}
        w.line(f"value, slope = jax.jit(jax.value_and_grad({name}))({x}, {y})")
        z = w.make("slope * value", x, y, low=-90, high=90)
    z = w.let("derivative", z)
    total = f"{z} + 0.1 * {x} * {y}"
    z = w.let("total", w.make(total, z, x, y, low=-99, high=99))
    w.words += [kind, name, w.pick(("twice", "mixed", "at_point"))]
    w.title = f"Compute derivatives of derivatives of a {name}"
    leave(w, calm(w, z), [x, y] if z.shape == shape else [], 3)


@template("scan under vmap", CATEGORY, 3)
def scan_in_vmap(w: Writer) -> None:
    """Write a loop for one example, vectorised, perhaps differentiated."""
    dtype = w.floating()
    batch, length, shape = w.size(2, 6), w.size(2, 8), w.shape(0, 1, 6)
    xs = w.array("sequences series batch", dtype, (batch, length, *shape))
    init = w.array("start initial", dtype, shape)
    name = w.name("filter_one run_one summarize")
    kind = w.pick(("scan", "fori", "scan_cond", "checkpoint"))
    with w.nested(f"{name}(row)"):
        head = {"fori": "step(i, carry)"}.get(kind, "step(carry, x)")
        decorator = ["@jax.checkpoint"] if kind == "checkpoint" else []
        with w.nested(head, *decorator):
            if kind == "fori":
                w.line("x = row[i]")
            carry, item = (Value(part, dtype, shape, -4.5, 4.5, True) for part in ("carry", "x"))
            new = w.let("new", contraction(w, carry, [item], w.between(1, 2)))
            new = w.let("next_state", w.make(f"{new} + 0.1 * jnp.tanh(x)", new))
            if kind == "scan_cond":
                flag = "x.ravel()[0] > 0.0" if shape else "x > 0.0"
                w.line(f"chosen = lax.cond({flag}, jnp.tanh, jnp.sin, {new})")
                new = new.named("chosen")
            w.line(f"return {new}" + ("" if kind == "fori" else f", {new}"))
        if kind == "fori":
            w.line(f"return lax.fori_loop(0, {length}, step, {init})")
        else:
            w.line(f"final, outputs = lax.scan(step, {init}, row)")
            w.line(
                w.pick(
                    (
                        "return final + jnp.mean(outputs, axis=0)",
                        "return final * outputs[0]",
                        "return jnp.max(outputs, axis=0) + 0.1 * final",
                    )
                )
            )
    w.transformations.add("vmap")
    if kind == "checkpoint":
        w.transformations.add("checkpoint")
    y = w.let(
        "finals",
        w.make(f"jax.vmap({name})({xs})", xs, init, shape=(batch, *shape), low=-20, high=20),
    )
    if w.chance(0.4):
        w.transformations.add("grad")
        text = f"jax.grad(lambda rows: jnp.mean(jax.vmap({name})(rows)))({xs})"
        slope = w.let("slope", w.make(text, xs, init, low=-5, high=5))
        reduced_slope = w.make(f"jnp.mean({slope}, axis=1)", slope, shape=(batch, *shape))
        y = w.let("mixed", binary(w, y, w.let("average_slope", reduced_slope)))
        y = w.let("total", w.make(f"{y} + 0.1 * {init}", y, init))
    w.words += ["batched", kind, name]
    w.title = f"Run a {kind.split('_')[0]} for each sequence of a batch"
    leave(w, calm(w, y), [init], 3)


@template("branches in transformations", CATEGORY, 3)
def branches(w: Writer) -> None:
    """Write conditionals inside of loops, vectorised or differentiated functions."""
    dtype = w.floating()
    n, shape = w.size(2, 8), w.shape(0, 1, 6)
    xs = w.array("xs rows inputs", dtype, (n, *shape))
    flags = w.array("flags choices", "bool", (n,))
    name = w.name("choose_one process_one")
    with w.nested(f"{name}(x, flag)"):
        local = Value("x", dtype, shape, -4.5, 4.5, True)
        names = []
        for part in ("on_true", "on_false"):
            names.append(part)
            with w.nested(f"{part}(v)"):
                value = chain(w, local.named("v"), w.between(1, 2))
                value = calm(
                    w,
                    w.short(smooth_tree(w, [Value("v", dtype, shape, -4.5, 4.5, True)], 1), "inner")
                    if w.chance(0.3)
                    else value,
                )
                w.line(f"return {w.hoisted(value.text)}")
        w.line("picked = lax.cond(flag, on_true, on_false, x)")
        w.line(f"return picked {w.pick('+-')} {w.pick((0.1, 0.5))} * x")
    kind = w.pick(("vmap", "map", "scan", "vmap_jit"))
    w.words += [kind, name, w.pick(("branches", "conditionally"))]
    w.title = f"Choose a branch for each row under {kind.replace('_', ' of ')}"
    if kind.startswith("vmap"):
        w.transformations.add("vmap")
        function = f"jax.jit({name})" if kind == "vmap_jit" else name
        if kind == "vmap_jit":
            w.transformations.add("jit")
        text = f"jax.vmap({function})({xs}, {flags})"
    elif kind == "map":
        text = f"lax.map(lambda row: {name}(*row), ({xs}, {flags}))"
    else:
        with w.nested("step(total, row)"):
            w.line(f"picked = {name}(*row)")
            w.line("return 0.5 * total + jnp.tanh(picked), picked * total")
        w.line(f"last, outputs = lax.scan(step, jnp.ones_like({xs}[0]), ({xs}, {flags}))")
        text = "outputs + last"
    y = w.let("chosen", w.make(text, xs, low=-60, high=60))
    leave(w, calm(w, y), [xs], 4)


@template("unrolled optimisation", CATEGORY, 3)
def optimisation(w: Writer) -> None:
    """Write gradient descent in a loop, and often its derivative."""
    dtype = w.wide()
    shape = w.shape(0, 2, 8)
    start = w.array("start params theta", dtype, shape)
    target = w.array("target data", dtype, shape)
    name = w.name("loss objective")
    scalar_function(w, name, dtype, [shape, shape])
    count, rate = w.between(2, 10), w.pick((0.1, 0.05, 0.01))
    form = w.pick(("fori", "scan", "python"))
    with w.nested("optimize(theta)"):
        w.line(f"slope = jax.grad({name})")
        if form == "fori":
            with w.nested("step(_, value)"):
                w.line(f"return value - {rate} * jnp.tanh(slope(value, {target}))")
            w.line(f"return lax.fori_loop(0, {count}, step, theta)")
        elif form == "scan":
            with w.nested("step(value, _)"):
                w.line(f"new = value - {rate} * jnp.tanh(slope(value, {target}))")
                w.line(f"return new, {name}(new, {target})")
            w.line(f"final, losses = lax.scan(step, theta, None, length={count})")
            w.line("return final + 0.01 * jnp.mean(losses)")
        else:
            with w.branch(f"for _ in range({min(count, 4)})"):
                w.line(f"theta = theta - {rate} * jnp.tanh(slope(theta, {target}))")
            w.line("return theta")
    w.transformations.add("grad")
    y = w.let("solution", w.make(f"optimize({start})", start, target, low=-7, high=7))
    if w.chance(0.5):
        w.transformations.add("jvp")
        text = f"jax.jvp(optimize, ({start},), (jnp.ones_like({start}),))[1]"
        slope = w.let("sensitivity", w.make(text, start, target, low=-9, high=9))
        y = w.let("mixed", binary(w, y, slope))
        y = w.let("total", w.make(f"{y} + 0.1 * {target}", y, target))
    y = w.let("distance", w.make(f"{y} - 0.5 * {target}", y, target, low=-60, high=60))
    w.words += ["optimize", name, form]
    w.title = f"Run gradient descent on a {name} in a loop"
    leave(w, calm(w, y), [start, target], 3)
