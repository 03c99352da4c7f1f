"""Templates of loops."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import binary, chain, tree
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, reduced
from jaxsight.dataset.generating.templates.gradients import smooth_tree
from jaxsight.dataset.generating.types import Value, jnp_dtype
from jaxsight.dataset.generating.writer import Writer


def contraction(w: Writer, carry: Value, inputs: list[Value], depth: int | None = None) -> Value:
    """Return a next state of the type of a state, which stays moderate over many iterations."""
    depth = w.between(1, 3) if depth is None else depth
    inner = tree(w, [carry, *inputs], depth)
    if carry.text not in inner.text or inner.shape != carry.shape:
        inner = binary(w, carry, w.short(inner, "drive input_part", 30))
    inner = w.short(inner, "drive force", 42)
    decay = w.pick((0.5, 0.8, 0.9, 0.95))
    rest = round(1 - decay, 2)
    bounded = w.pick(("jnp.tanh({x})", "jnp.sin({x})", "jax.nn.sigmoid({x})", "jnp.tanh({x})"))
    squashed = bounded.format(x=inner)
    text = w.pick(
        (
            squashed,
            f"{decay} * {carry} + {rest} * {squashed}",
            f"{carry} + {w.pick((0.1, 0.05, 0.01))} * {squashed}",
            f"{decay} * {carry} + {squashed}" if decay <= 0.8 else squashed,
        )
    )
    return w.make(text, carry, *inputs, low=-4, high=4)


def displaced(w: Writer, y: Value, x: Value) -> Value:
    """Return a function of a final state and of its start, which many iterations forget."""
    form = w.pick(("{y} - {x}", "{y} * jnp.cos({x})", "0.5 * ({y} + {x})", "{y} - 0.5 * {x}"))
    value = w.make(form.format(y=y, x=x), y, x, low=y.low - 5, high=y.high + 5)
    return w.let("displacement change", value)


@template("scan", "loops", 4)
def scan(w: Writer) -> None:
    """Write a scan over the leading axis of an array."""
    dtype = w.floating()
    length, shape = w.size(3, 32), w.shape(0, 2, 12)
    name = w.pick(("xs inputs", "observations series", "rewards increments"))
    xs = w.array(name, dtype, (length, *shape))
    init = w.array("state initial carry", dtype, shape)
    weights = None
    if shape and w.chance(0.4):
        weights = w.array("weights transition", dtype, (shape[-1], shape[-1]))
    step_name = w.name("step update advance")
    two = w.chance(0.3)
    with w.nested(f"{step_name}(carry, x)"):
        state = init.named("carry").within(-4, 4)
        if two:
            w.line("state_now, trace = carry")
            state = state.named("state_now")
        item = xs.named("x")
        item = Value("x", dtype, shape, -4.5, 4.5, True)
        inputs = [item]
        if weights is not None:
            mixed = Value(f"{state} @ {weights} / {float(shape[-1])}", dtype, shape, -9, 9, True)
            inputs.append(w.let("mixed recurrent", mixed))
        new = w.let("new_state", contraction(w, state, inputs))
        if not _mentions_all(w, inputs):
            new = w.let("shifted", w.make(f"{new} + 0.1 * jnp.tanh({item})", new))
            if weights is not None:
                new = w.let("final", w.make(f"0.5 * {new} + 0.1 * jnp.tanh({inputs[1]})", new))
        out = w.short(calm(w, chain(w, new, w.between(0, 2))), "output", 50)
        if w.chance(0.3) and out.rank:
            out = w.let("summary", reduced(w, w.short(out, "inner"), None)[0])
        if two:
            w.line(f"new_trace = 0.9 * trace + 0.1 * {new}")
            w.line(f"return ({new}, new_trace), {out}")
        else:
            w.line(f"return {new}, {out}")
    options = w.pick(("", "", ", reverse=True", f", unroll={w.pick((2, 4))}"))
    start = f"({init}, jnp.zeros_like({init}))" if two else init.text
    last = "(last, trace)" if two else "last"
    w.names |= {"last", "trace", "outputs"}
    w.line(f"{last}, outputs = lax.scan({step_name}, {start}, {xs}{options})")
    final = w.make("last", init, xs, low=-4, high=4)
    outputs = w.make("outputs", xs, init, shape=(length, *out.shape), low=out.low, high=out.high)
    w.words += ["scan", w.pick(("recurrence", "filter", "states", "series")), step_name]
    w.title = f"Scan a recurrence over {length} steps"
    if two:
        final = w.let("both", w.make("last + trace", final, low=-8, high=8))
    _finish_scan(w, final, outputs)


def _finish_scan(w: Writer, final: Value, outputs: Value) -> None:
    """Write the end of a program from the last state and the outputs of a scan."""
    shape, inner = final.shape, outputs.shape[1:]
    kind = w.between(0, 2)
    if kind == 0 and final.text == "last":
        w.lines[-1] = w.lines[-1].replace("last, outputs", "last, _")
        leave(w, final, [], 3)
    elif kind == 1:
        w.give(final, outputs)
    else:
        average = w.let("average", w.make("jnp.mean(outputs, axis=0)", outputs, shape=inner))
        value = w.let(
            "total", w.make(f"{final} + {average}", final, average, low=-9, high=9, shape=shape)
        )
        leave(w, value.within(-50, 50), [], 3)


def _mentions_all(w: Writer, inputs: list[Value]) -> bool:
    """Return whether the lines of the function being written use all of the inputs."""
    start = max(k for k, line in enumerate(w.lines) if line.lstrip().startswith("def "))
    body = "\n".join(w.lines[start + 1 :])
    rest = [value.text for value in inputs]
    return all(
        body.count(f"{name})")
        + body.count(f"{name} ")
        + body.count(f"{name},")
        + body.count(f"{name}\n")
        > (name != "x")
        for name in rest
    )


@template("fori loop", "loops", 3)
def fori(w: Writer) -> None:
    """Write a loop with a fixed number of iterations."""
    dtype = w.floating()
    shape = w.shape(0, 3, 16)
    x = w.array("x state field", dtype, shape)
    others = [w.array("drive forcing target", dtype, shape)] if w.chance(0.5) else []
    count = w.between(2, 40)
    body_name = w.name("body step relax")
    uses_index = w.chance(0.4)
    with w.nested(f"{body_name}({'i' if uses_index else '_'}, value)"):
        state = x.named("value").within(-5, 5)
        inputs = list(others)
        if uses_index:
            phase = f"(0.1 * (i + 1)).astype({jnp_dtype(dtype)})"
            if dtype != "float64":
                phase = f"jnp.asarray(0.1 * i, {jnp_dtype(dtype)})"
            inputs.append(w.let("phase", Value(phase, dtype, (), 0, 4)))
        if shape and w.chance(0.4):
            rolled = w.make(f"jnp.roll(value, 1, axis={w.between(0, len(shape) - 1)})", state)
            inputs.append(w.let("neighbor", rolled))
        new = w.let("updated", contraction(w, state, inputs))
        rest = [each for each in inputs if not _mentions_all(w, [each])]
        text = " + ".join([new.text, *(f"0.01 * jnp.tanh({each})" for each in rest)])
        w.line(f"return {text}")
    upper = str(count)
    y = w.let(
        "final", w.make(f"lax.fori_loop(0, {upper}, {body_name}, {x})", x, *others, low=-8, high=8)
    )
    y = displaced(w, y, x)
    w.words += ["iterate", w.pick(("map", "relaxation", "dynamics")), f"{count}_times"]
    w.title = f"Iterate a map {count} times"
    leave(w, y, [x, *others], 3)


@template("while loop", "loops", 3)
def while_loop(w: Writer) -> None:
    """Write a loop that ends at a condition on a counter."""
    dtype = w.floating()
    shape = w.shape(0, 2, 16)
    x = w.array("x start guess", dtype, shape)
    steps = w.array("steps iterations", w.index(), (), f"integers:{w.between(8, 40)}")
    w.line(f"limit = {steps} + 2")
    condition, body = w.name("condition keep_going"), w.name("body iterate")
    with w.nested(f"{condition}(state)"):
        w.line("count, _ = state")
        w.line("return count < limit")
    with w.nested(f"{body}(state)"):
        w.line("count, value = state")
        new = w.let("updated", contraction(w, x.named("value").within(-4, 4), []))
        w.line(f"return count + 1, {new}")
    start = f"(jnp.zeros_like({steps}), {x})"
    w.blocked(x)
    count, value = w.name("count"), w.name("final")
    w.line(f"{count}, {value} = lax.while_loop({condition}, {body}, {start})")
    last = w.make(value, x, low=-6, high=6)
    y = w.let("shifted", w.make(f"{last} + {count}.astype({jnp_dtype(dtype)})", last, high=46))
    y = displaced(w, y, x)
    w.words += ["while", w.pick(("iterate", "relax", "advance")), w.pick(("map", "state"))]
    w.title = "Iterate a map until a counter reaches a limit"
    leave(w, y, [x], 3)


@template("solver", "loops", 3)
def solver(w: Writer) -> None:
    """Write an iterative method: Newton, power iteration, gradient descent, integration."""
    dtype = w.wide()
    kind = w.pick(("newton", "power", "descent", "euler", "heun", "rk4", "jacobi", "bisection"))
    count = w.between(3, 24)
    w.words += [kind, w.pick(("solver", "method", "iteration")), f"{count}_steps"]
    w.title = f"Run {count} steps of {kind.replace('rk4', 'Runge-Kutta')}"
    if kind in ("power", "jacobi"):
        _iterate_matrix(w, kind, count, dtype)
        return
    shape = w.shape(0, 2, 16)
    x = w.array("x guess position", dtype, shape, w.pick(("normal", "positive")))
    other = w.array("target level rate", dtype, shape, "positive")
    rate = w.pick((0.01, 0.05, 0.1))
    field = w.name("slope field residual")
    with w.nested(f"{field}(v)"):
        local = x.named("v").within(-4, 4)
        write = smooth_tree if kind in ("newton", "descent") else tree
        value = write(w, [local, other], w.between(1, 2))
        value = w.short(value, "force", 40)
        w.line(f"return jnp.tanh({value}) - {w.pick((0.1, 0.5, 1.0))} * v / {other}")
    w.names.add("step")
    _write_step(w, kind, field, rate, other)
    if w.chance(0.3):
        w.line(f"final, _ = lax.scan(step, {x}, None, length={count})")
        start = next(k for k, line in enumerate(w.lines) if "def step(_, v):" in line)
        w.lines[start] = w.lines[start].replace("(_, v)", "(v, _)")
        last = max(k for k, line in enumerate(w.lines) if line.startswith("        return"))
        w.lines[last] += ", None"
        y = w.make("final", x, other, low=-9, high=9)
    else:
        y = w.let(
            "final", w.make(f"lax.fori_loop(0, {count}, step, {x})", x, other, low=-9, high=9)
        )
    y = displaced(w, y, x)
    leave(w, y, [x, other], 4)


def _iterate_matrix(w: Writer, kind: str, count: int, dtype: str) -> None:
    """Write an iteration of products with a matrix, and the rest of the program."""
    n = w.size(2, 12)
    a = w.array("matrix operator", dtype, (n, n), "definite")
    v = w.array("vector start", dtype, (n,), "positive")
    with w.nested("step(_, v)"):
        if kind == "power":
            w.line(f"product = {a} @ v")
            w.line(
                w.pick(
                    (
                        "return product / jnp.linalg.norm(product)",
                        "return product / jnp.max(jnp.abs(product))",
                        "return product / jnp.sum(jnp.abs(product))",
                    )
                )
            )
        else:
            w.line(f"residual = {v} - {a} @ v")
            w.line(
                w.pick(
                    (
                        f"return v + 0.5 * residual / jnp.trace({a})",
                        f"return v + 0.1 * residual / jnp.max(jnp.sum(jnp.abs({a}), axis=1))",
                    )
                )
            )
    y = w.let("solution", w.make(f"lax.fori_loop(0, {count}, step, {v})", v, a, low=-8, high=8))
    y = displaced(w, y, v)
    if kind == "power":
        y = w.let("eigenvalue", w.make(f"{y} @ ({a} @ {y})", y, a, shape=(), low=0, high=30))
        leave(w, y, [], 3)
        return
    leave(w, y, [v], 4)


def _write_step(w: Writer, kind: str, field: str, rate: float, other: Value) -> None:
    with w.nested("step(_, v)"):
        if kind == "newton":
            w.transformations.add("jvp")
            w.line(f"value, change = jax.jvp({field}, (v,), (jnp.ones_like(v),))")
            w.line("return v - 0.1 * jnp.tanh(value / (1.0 + jnp.abs(change)))")
        elif kind == "descent":
            w.transformations.add("grad")
            w.line(f"gradient = jax.grad(lambda u: jnp.sum({field}(u) ** 2))(v)")
            w.line(f"return v - {rate} * jnp.tanh(gradient)")
        elif kind == "heun":
            w.line(f"first = {field}(v)")
            w.line(f"second = {field}(v + {rate} * first)")
            w.line(f"return v + {rate / 2} * (first + second)")
        elif kind == "rk4":
            w.line(f"k1 = {field}(v)")
            w.line(f"k2 = {field}(v + {rate / 2} * k1)")
            w.line(f"k3 = {field}(v + {rate / 2} * k2)")
            w.line(f"k4 = {field}(v + {rate} * k3)")
            w.line(f"return v + {rate} * (k1 + 2.0 * k2 + 2.0 * k3 + k4) / 6.0")
        elif kind == "bisection":
            w.line(f"return 0.5 * v + 0.5 * jnp.clip({field}(v), -{other}, {other})")
        else:
            w.line(f"return v + {rate} * {field}(v)")


@template("map and accumulate", "loops")
def mapped(w: Writer) -> None:
    """Write `lax.map`, `lax.associative_scan` and Python loops."""
    dtype = w.floating()
    length, shape = w.size(3, 16), w.shape(0, 2, 12)
    xs = w.array("rows items series", dtype, (length, *shape))
    kind = w.pick(("map", "associative", "python", "python"))
    w.words += [kind.replace("python", "unrolled"), w.pick(("rows", "items", "series"))]
    if kind == "map":
        name = w.name("process transform")
        w.title = f"Map a function over {length} rows"
        with w.nested(f"{name}(row)"):
            row = Value("row", dtype, shape, -4.5, 4.5, True)
            value = calm(w, chain(w, row, w.between(1, 3)))
            if row.rank and w.chance(0.5):
                value = reduced(w, w.short(value, "inner"), None)[0]
            w.line(f"return {w.hoisted(value.text)}")
        batch = w.pick(("", "", f", batch_size={w.between(2, length)}"))
        text = f"lax.map({name}, {xs}{batch})"
        y = w.let(
            "mapped", w.make(text, xs, shape=(length, *value.shape), low=value.low, high=value.high)
        )
        leave(w, y, [], 3)
        return
    if kind == "associative":
        w.title = "Combine rows with an associative scan"
        name = w.name("combine merge")
        with w.nested(f"{name}(left, right)"):
            kinds = ("jnp.maximum({})", "jnp.add({})", "jnp.minimum({})", "jnp.logaddexp({})")
            w.line(f"return {w.pick(kinds).format('left, right')}")
        scaled = w.let("scaled", w.make(f"0.2 * {xs}", xs, low=-1, high=1))
        options = w.pick(("", ", reverse=True"))
        text = f"lax.associative_scan({name}, {scaled}{options})"
        y = w.let("running", w.make(text, scaled, low=-20, high=20))
        leave(w, y, [xs], 4)
        return
    state, item = w.name("total state"), w.name("index")
    w.title = f"Accumulate over {length} rows in an unrolled loop"
    w.line(f"{state} = jnp.zeros_like({xs}[0])")
    length = min(length, w.between(2, 6))
    with w.branch(f"for {item} in range({xs}.shape[0])"):
        row = Value(f"{xs}[{item}]", dtype, shape, -4.5, 4.5, True)
        row = w.let("row", row)
        new = contraction(w, Value(state, dtype, shape, -4, 4, True), [row], w.between(1, 2))
        w.line(f"{state} = {w.hoisted(new.text)} + 0.1 * {row}")
    leave(w, w.make(state, xs, shape=shape, low=-9, high=9), [], 4)
