"""Templates of derivatives."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import binary, chain, tree
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, reduced
from jaxsight.dataset.generating.types import Value
from jaxsight.dataset.generating.writer import Writer


def body(w: Writer, values: list[Value], depth: int | None = None) -> Value:
    """Return a smooth, moderate expression of values that depends on each of them."""
    depth = w.between(1, 3) if depth is None else depth
    soft = [value.named(value.text) for value in values]
    plain = [
        Value(value.text, value.dtype, value.shape, value.low, value.high, True) for value in soft
    ]
    x = w.short(smooth_tree(w, plain, depth), "inner", 40)
    for value in plain:
        x = w.short(
            w.make(f"{x.atom} + jnp.sin({value})", x, value, low=x.low - 1, high=x.high + 1),
            "inner",
            50,
        )
    return calm(w, x)


def smooth_tree(w: Writer, values: list[Value], depth: int) -> Value:
    """Return a random expression without functions that stop derivatives."""
    state = w.random.getstate()
    for _ in range(8):
        lines, names, blocked = list(w.lines), set(w.names), w.is_blocked
        x = tree(w, values, depth)
        text = "\n".join([*w.lines[len(lines) :], x.text])
        if not any(word in text for word in ("stop_gradient", "nextafter")):
            return x
        w.lines[:], w.names, w.is_blocked = lines, names, blocked
    w.random.setstate(state)
    return w.make(f"jnp.sin({values[0]})", values[0], low=-1, high=1)


def loss_function(w: Writer, values: list[Value], name: str | None = None) -> tuple[str, float]:
    """Write a scalar function of some arrays, and return its name."""
    name = name or w.name("loss objective energy cost")
    locals_ = [
        Value(part, value.dtype, value.shape, value.low, value.high, True)
        for value, part in zip(values, ("x", "y", "z"), strict=False)
    ]
    taken = {"x", "y", "z"} & set(w.parameters)
    parts = ("u", "v", "s") if taken else ("x", "y", "z")
    locals_ = [each.named(part) for each, part in zip(locals_, parts, strict=False)]
    head = f"{name}({', '.join(each.text for each in locals_)})"
    with w.nested(head) if w.chance(0.6) else w.helper(head):
        x = body(w, locals_)
        x = w.let("residual terms", x)
        kind = w.pick(("mean", "square", "sum", "logsumexp"))
        if not x.rank:
            w.line(
                f"return {w.pick(('jnp.square({x})', 'jnp.tanh({x})', 'jnp.cos({x})')).format(x=x)}"
            )
        elif kind == "mean":
            w.line(f"return jnp.mean(jnp.square({x}))")
        elif kind == "square":
            w.line(f"return 0.5 * jnp.mean({x}**2)")
        elif kind == "sum":
            w.line(f"return jnp.sum(jnp.tanh({x})) / {float(x.size)}")
        else:
            w.line(f"return jax.nn.logsumexp(jnp.sin({x}))")
    return name, 30.0


@template("gradient of a loss", "gradients", 4)
def gradient(w: Writer) -> None:
    """Write a gradient with respect to one or several arguments, and functions of it."""
    dtype = w.floating()
    shape = w.shape(0, 3, 16)
    values = [w.array("weights params theta", dtype, shape)]
    if w.chance(0.6):
        values.append(w.array("inputs data", dtype, shape))
    name, bound = loss_function(w, values)
    arguments = ", ".join(value.text for value in values)
    kind = w.pick(("grad", "value_and_grad", "both", "twice"))
    w.transformations.add("grad" if kind != "value_and_grad" else "value_and_grad")
    w.words += [w.pick(("gradient", "slope", "sensitivity")), name, kind]
    w.title = f"Differentiate a {name} function"
    if kind == "value_and_grad":
        w.line(f"value, gradient = jax.value_and_grad({name})({arguments})")
        y = w.make("gradient", *values, low=-bound, high=bound)
        scale = w.pick(("value", "jnp.tanh(value)", "jnp.abs(value)"))
        y = w.let("scaled", w.make(f"{y} * {scale}", y, low=-2 * bound, high=2 * bound))
    elif kind == "both" and len(values) > 1:
        w.line(f"first_grad, second_grad = jax.grad({name}, argnums=(0, 1))({arguments})")
        parts = [
            w.make(part, *values, low=-bound, high=bound) for part in ("first_grad", "second_grad")
        ]
        w.names |= {"first_grad", "second_grad"}
        y = w.let("mixed", binary(w, *[calm(w, part) for part in parts]))
    else:
        y = w.let(
            "gradient", w.make(f"jax.grad({name})({arguments})", *values, low=-bound, high=bound)
        )
    if w.chance(0.5):
        rate = w.pick((0.01, 0.1, 0.5))
        y = w.let("stepped", w.make(f"{values[0]} - {rate} * {y}", *values, y, low=-9, high=9))
    else:
        y = w.let("blended_slope", w.make(f"{y} + 0.1 * jnp.sin({values[0]})", y, values[0]))
    leave(w, calm(w, y), values, 3)


@template("forward derivatives", "gradients", 2)
def forward(w: Writer) -> None:
    """Write `jax.jvp` and `jax.linearize` of a function."""
    dtype = w.floating()
    shape = w.shape(0, 3, 16)
    x = w.array("x point primal", dtype, shape)
    t = w.array("tangent direction velocity", dtype, shape)
    name = w.name("function transform flow")
    with w.nested(f"{name}(u)"):
        local = Value("u", dtype, shape, x.low, x.high, True)
        value = body(w, [local])
        w.line(f"return {w.hoisted(value.text)}")
    kind = w.pick(("jvp", "linearize", "second", "both"))
    w.transformations.add("jvp" if kind != "linearize" else "linearize")
    if kind == "linearize":
        w.line(f"value, tangent_map = jax.linearize({name}, {x})")
        w.line(f"change = tangent_map({t})")
    elif kind == "second":
        with w.nested("slope(u)"):
            w.line(f"return jax.jvp({name}, (u,), ({t},))[1]")
        w.line(f"value, change = jax.jvp(slope, ({x},), ({t},))")
    else:
        w.line(f"value, change = jax.jvp({name}, ({x},), ({t},))")
    value = w.make("value", x, t, low=-20, high=20)
    change = w.make("change", x, t, low=-60, high=60)
    w.names |= {"value", "change"}
    w.words += ["directional", w.pick(("derivative", "change", "flow")), kind]
    w.title = f"Compute a {'second ' if kind == 'second' else ''}directional derivative"
    if kind == "both":
        w.give(value, change)
        return
    mixed = w.let("combined", binary(w, calm(w, value), calm(w, change)))
    y = w.let("total", w.make(f"{mixed} + 0.1 * {change}", mixed, change, low=-50, high=50))
    leave(w, y, [x, t], 3)


@template("reverse derivatives", "gradients", 2)
def reverse(w: Writer) -> None:
    """Write `jax.vjp` of a function, with a cotangent that is an argument."""
    dtype = w.floating()
    shape = w.shape(1, 3, 12)
    x = w.array("x inputs primal", dtype, shape)
    name = w.name("function transform model")
    with w.nested(f"{name}(u)"):
        local = Value("u", dtype, shape, x.low, x.high, True)
        value = body(w, [local])
        if w.chance(0.5):
            value = reduced(w, w.short(value, "inner"), -1)[0]
        w.line(f"return {w.hoisted(value.text)}")
    c = w.array("cotangent weights seed", dtype, value.shape)
    w.transformations.add("vjp")
    w.line(f"outputs, pullback = jax.vjp({name}, {x})")
    w.line(f"(gradient,) = pullback({c})")
    w.names |= {"outputs", "gradient"}
    y = w.make("gradient", x, c, low=-50, high=50)
    w.words += ["pullback", name, w.pick(("of_inputs", "vector", "rows"))]
    w.title = "Pull a cotangent back through a function"
    if w.chance(0.3):
        w.give(w.make("outputs", x, shape=value.shape, low=-20, high=20), y)
        return
    w.lines[-2] = w.lines[-2].replace("outputs, pullback", "_, pullback")
    y = w.let("total", w.make(f"{y} + 0.1 * jnp.sin({x})", y, x))
    leave(w, calm(w, y), [x], 4)


@template("second derivatives", "gradients", 2)
def hessian(w: Writer) -> None:
    """Write Jacobians, Hessians and products with them."""
    dtype = w.wide()
    n = w.size(2, 8)
    x = w.array("x theta position", dtype, (n,))
    kind = w.pick(("hessian", "jacfwd", "jacrev", "hvp", "laplacian", "newton", "divergence"))
    is_scalar = kind in ("hessian", "hvp", "laplacian", "newton")
    name = w.name("energy potential loss" if is_scalar else "field residuals transform")
    shift = w.array("shift bias center", dtype, (n,)) if w.chance(0.4) else None
    with w.nested(f"{name}(u)"):
        local = Value("u", dtype, (n,), x.low, x.high, True)
        value = w.let("terms", body(w, [local, *([shift] if shift else [])]))
        text = f"jnp.sum(jnp.sin({value}))" if is_scalar else f"jnp.cos({value}) * jnp.flip(u)"
        w.line(f"return {text}")
    sources = [x, *([shift] if shift else [])]
    bound = 80.0
    w.transformations.add(
        {"hvp": "grad", "laplacian": "hessian", "newton": "hessian", "divergence": "jacfwd"}.get(
            kind, kind
        )
    )
    if kind in ("hessian", "jacfwd", "jacrev"):
        y = w.make(f"jax.{kind}({name})({x})", *sources, shape=(n, n), low=-bound, high=bound)
    elif kind == "hvp":
        v = w.array("vector direction", dtype, (n,))
        w.transformations.add("jvp")
        text = f"jax.jvp(jax.grad({name}), ({x},), ({v},))[1]"
        y = w.make(text, *sources, v, low=-bound, high=bound)
        y = w.let("product", y)
        y = w.make(f"{y} + 0.1 * jnp.sin({x})", y, x)
    elif kind in ("laplacian", "divergence"):
        function = "hessian" if kind == "laplacian" else "jacfwd"
        text = f"jnp.trace(jax.{function}({name})({x}))"
        y = w.make(text, *sources, shape=(), low=-bound, high=bound)
    else:
        w.transformations.add("grad")
        w.line(f"gradient = jax.grad({name})({x})")
        w.line(f"curvature = jnp.diagonal(jax.hessian({name})({x}))")
        y = w.make(f"{x} - jnp.tanh(gradient) / (1.0 + curvature**2)", *sources, low=-9, high=9)
    w.words += [kind, name, w.pick(("at_point", "of_vector", "local"))]
    w.title = (
        f"Compute a {kind} of a function of a vector".replace("hvp", "Hessian product")
        .replace("jacfwd", "Jacobian")
        .replace("jacrev", "Jacobian")
        .replace("hessian", "Hessian")
    )
    y = w.let("derivative", y)
    leave(w, calm(w, y), [x], 3)


@template("training step", "gradients", 3)
def training(w: Writer) -> None:
    """Write a step of gradient descent for a linear or small model."""
    dtype = w.floating()
    batch, inner, outer = w.size(2, 16), w.size(2, 12), w.size(2, 8)
    x = w.array("x inputs features", dtype, (batch, inner))
    kind = w.pick(("regression", "classification", "ranking", "reconstruction"))
    weights = w.array("weights kernel", dtype, (inner, outer))
    bias = w.array("bias offset", dtype, (outer,)) if w.chance(0.6) else None
    if kind == "classification":
        y = w.array("labels targets", w.index(), (batch,), f"integers:{outer}")
    else:
        columns = inner if kind == "reconstruction" else outer
        y = w.array("targets y", dtype, (batch, columns))
    w.transformations.add("grad")
    arguments = f"weights{', bias' if bias else ''}"
    loss = w.name("loss objective")
    with w.nested(f"{loss}({arguments})"):
        text = f"{x} @ weights / {float(inner)}" + (" + bias" if bias else "")
        outputs = Value(text, dtype, (batch, outer), -12, 12, True)
        outputs = w.let("outputs logits", outputs)
        outputs = w.let("activated", calm(w, _smooth_chain(w, outputs, w.between(0, 2))))
        if kind == "classification":
            w.line(f"log_probs = jax.nn.log_softmax({outputs})")
            w.line(f"picked = jnp.take_along_axis(log_probs, {y}[:, None], axis=1)")
            w.line("return -jnp.mean(picked)")
        elif kind == "reconstruction":
            w.line(f"decoded = jnp.tanh({outputs}) @ weights.T")
            w.line(f"return jnp.mean((decoded - {y}) ** 2) / {float(inner)}")
        elif kind == "ranking":
            w.line(f"return jnp.mean(jax.nn.softplus(-{outputs} * {y}))")
        else:
            w.line(f"return jnp.mean(({outputs} - {y}) ** 2) / 10.0")
    rate = w.pick((0.01, 0.1, 0.3))
    smooth = [x, weights, *([bias] if bias else []), *([y] if y.is_float else [])]
    if bias:
        w.line(f"grads = jax.grad({loss}, argnums=(0, 1))({weights}, {bias})")
        w.line(f"new_weights = {weights} - {rate} * grads[0]")
        w.line(f"new_bias = {bias} - {rate} * grads[1]")
        w.give(w.make("new_weights", *smooth[1:2], *smooth), w.make("new_bias", bias, *smooth))
    else:
        w.line(f"gradient = jax.grad({loss})({weights})")
        g = w.make("gradient", weights, *smooth, low=-30, high=30)
        step = w.make(f"{weights} - {rate} * {g}", weights, *smooth, low=-9, high=9)
        leave(w, w.let("new_weights", step), [weights], 3)
    w.words += [kind, w.pick(("step", "update", "descent")), "with_bias" if bias else ""]
    w.title = f"Run one step of gradient descent on a {kind} loss"


def _smooth_chain(w: Writer, x: Value, length: int) -> Value:
    plain = Value(x.text, x.dtype, x.shape, x.low, x.high, True)
    y = plain
    for _ in range(length):
        y = smooth_tree(w, [y], 1)
        y = chain(w, y, 0)
    return y if y.shape == x.shape else x
