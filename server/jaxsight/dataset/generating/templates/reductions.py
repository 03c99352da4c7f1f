"""Templates of reductions, cumulative functions, sorting and windows."""

from __future__ import annotations

import math

from jaxsight.dataset.generating.elementwise import binary, chain, compare, tree
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import (
    as_float,
    leave,
    normalised,
    prepare,
    reduced,
    scanned,
)
from jaxsight.dataset.generating.types import (
    INTEGERS,
    UNSIGNED,
    Value,
    jnp_dtype,
    power,
    without,
)
from jaxsight.dataset.generating.vocabulary import DATA
from jaxsight.dataset.generating.writer import Writer


@template("statistics", "reductions", 3)
def statistics(w: Writer) -> None:
    """Write several statistics of an array, combined or returned together."""
    x = w.array(DATA, w.floating(), w.shape(1, 5, 32))
    y = prepare(w, x, 1)
    axis = w.between(0, x.rank - 1)
    words, results = [], []
    for _ in range(w.between(1, 4)):
        source = w.short(chain(w, w.pick((x, y)), w.pick((0, 0, 1))), "inner mapped", 40)
        value, names = reduced(w, calm(w, source), axis)
        words.append(names.split()[0])
        results.append(w.let(names, value))
    w.words = [*dict.fromkeys(words)][:3]
    w.words.append(w.pick(("of_rows", "summary", "statistics", "over_axis")))
    w.title = f"Compute statistics over axis {axis}: {', '.join(dict.fromkeys(words))}"
    w.title = w.title.replace("_", " ")[:78]
    if not any(_uses(line, y.text) for line in w.lines[-len(results) - 3 :]):
        results.append(w.let("rest", reduced(w, y, axis)[0]))
    if w.chance(0.25):
        w.give(*results)
        return
    result = results[0]
    for other in results[1:]:
        if other.text != result.text:
            result = w.let("combined score", binary(w, result, other))
    leave(w, result, results, 2)


def _uses(line: str, name: str) -> bool:
    return name in line.partition("=")[2]


@template("bitwise reduction", "reductions", 5)
def bitwise(w: Writer) -> None:
    """Write reductions of integers or booleans by operators on bits."""
    dtype = w.dtype(*INTEGERS, "bool")
    x = w.array("flags bits words mask codes", dtype, w.shape(1, 4, 16))
    if w.chance(0.5):
        x = w.let("mixed", tree(w, [x], 2)) if dtype != "bool" else x
    axis = w.between(0, x.rank - 1)
    operation = w.pick(("and", "or", "xor", "xor"))
    kind = w.pick(("lax.reduce", "direct", "ufunc"))
    shape = without(x.shape, axis)
    start = {"and": "-1", "or": "0", "xor": "0"}[operation]
    if dtype == "bool":
        start = {"and": "True", "or": "False", "xor": "False"}[operation]
    elif dtype in UNSIGNED and operation == "and":
        start = str(2 ** int(dtype[4:]) - 1)
    if kind == "lax.reduce":
        init = w.let("start", Value(f"jnp.array({start}, {jnp_dtype(dtype)})", dtype, ()))
        text = f"lax.reduce({x}, {init}, lax.bitwise_{operation}, ({axis},))"
    elif kind == "direct" or dtype == "bool":
        text = f"lax.reduce_{operation}({x}, axes=({axis},))"
    else:
        text = f"jnp.bitwise_{operation}.reduce({x}, axis={axis})"
    value = w.make(text, x, shape=shape, low=min(x.low, 0), high=max(x.high, 2.0**31))
    y = w.let("reduced folded", value)
    w.words += [f"reduce_{operation}", w.pick(("bits", "parity", "flags", "masks"))]
    w.title = f"Reduce {dtype} values over axis {axis} with bitwise {operation}"
    if w.chance(0.3):
        y = w.let("indicator", as_float(w, y))
    leave(w, y, [], 3)


@template("general reduction", "reductions")
def general(w: Writer) -> None:
    """Write a reduction with a function of its own."""
    dtype = w.wide()
    x = prepare(w, w.array(DATA, dtype, w.shape(1, 4, 12)), 1)
    axis = w.between(0, x.rank - 1)
    name = w.name("combine merge join")
    one, other = "left", "right"
    body, start, low, high = w.pick(
        (
            ("jnp.logaddexp(left, right)", "-jnp.inf", -10, 20),
            ("jnp.hypot(left, right)", "0.0", 0, 50),
            ("jnp.sqrt(left**2 + right**2)", "0.0", 0, 50),
            ("jnp.log(jnp.exp(left) + jnp.exp(right))", "-jnp.inf", -10, 20),
        )
    )
    if "exp(left)" in body:
        x = w.let("bounded", w.make(f"jnp.tanh({x})", x, low=-1, high=1))
    with w.nested(f"{name}({one}, {other})"):
        w.line(f"return {body}")
    start_value = w.let("start", Value(f"jnp.array({start}, {jnp_dtype(dtype)})", dtype, ()))
    text = f"lax.reduce({x}, {start_value}, {name}, ({axis},))"
    y = w.let("reduced", w.make(text, x, shape=without(x.shape, axis), low=low, high=high))
    w.words += ["reduce", body.split("(")[0].split(".")[-1], w.pick(("rows", "values", "axis"))]
    w.title = f"Reduce over axis {axis} with {body.split('(')[0]}"
    leave(w, y, [], 4)


@template("cumulative", "reductions")
def cumulative(w: Writer) -> None:
    """Write cumulative functions."""
    x = w.array(
        w.pick(("series rewards increments", "counts steps deltas", "losses prices returns")),
        w.floating(),
        w.shape(1, 4, 24),
    )
    y = prepare(w, x, 1)
    words = []
    for _ in range(w.between(1, 2)):
        value, names = scanned(w, w.short(calm(w, y), "inner"))
        words.append(names.split()[0])
        y = w.let(names, value)
        if w.chance(0.4):
            y = w.let("mapped", calm(w, chain(w, y, 1)))
    w.words = [*dict.fromkeys(words), w.pick(("series", "path", "curve", "profile"))]
    w.title = f"Compute the {words[0].replace('_', ' ')} of a series"
    leave(w, y, [x] if y.shape == x.shape else [], 3)


@template("integer cumulative", "reductions", 3)
def integer_cumulative(w: Writer) -> None:
    """Write cumulative functions and sorts of integers."""
    dtype = w.dtype(*INTEGERS)
    x = w.array("counts lengths steps ids", dtype, w.shape(1, 3, 24))
    y = w.let("mixed", tree(w, [x], w.between(1, 2))) if w.chance(0.5) else x
    axis = w.between(0, x.rank - 1)
    name, text = w.pick(
        (
            ("cumsum", "lax.cumsum({x}, axis={a})"),
            ("cumprod", "lax.cumprod({x}, axis={a})"),
            ("running_product", "lax.cumprod({x}, axis={a}, reverse=True)"),
            ("cummax", "lax.cummax({x}, axis={a}, reverse=True)"),
            ("cummin", "lax.cummin({x}, axis={a})"),
            ("sort", "jnp.sort({x}, axis={a})"),
            ("unique_counts", "jnp.sort({x}, axis={a}, descending=True)"),
        )
    )
    low, high = (y.low, y.high) if name in ("cummax", "cummin", "sort") else (-1e9, 1e9)
    value = w.make(text.format(x=y, a=axis), y, low=low, high=high, is_exact=True)
    z = w.let("running ordered", value)
    w.words += [name, dtype, w.pick(("counts", "ids", "offsets"))]
    w.title = f"Compute a {name.replace('_', ' ')} of {dtype} values along axis {axis}"
    if w.chance(0.3):
        z = w.let("levels", as_float(w, z))
    leave(w, z, [y], 3)


@template("sorting", "reductions")
def sorting(w: Writer) -> None:
    """Write sorts, ranks and largest elements of direct arguments."""
    dtype = w.floating()
    x = w.array("scores values logits", dtype, w.shape(1, 3, 32))
    last = x.shape[-1]
    k = min(last, w.between(1, 5))
    kind = w.pick(("sort", "argsort", "top_k", "multi", "rank", "quantile", "search", "approx"))
    w.title = f"Order {dtype} values: {kind.replace('_', ' ').replace('multi', 'by key')}"
    w.words = ["order_by", kind]
    if kind == "sort":
        text = w.pick(("lax.sort({x}, dimension={a})", "jnp.sort({x}, axis={a}, descending=True)"))
        y = w.make(text.format(x=x, a=w.between(0, x.rank - 1)), x)
    elif kind == "argsort":
        order = Value(f"jnp.argsort({x}, axis=-1)", "int64", x.shape)
        order = w.let("order", order)
        y = w.make(f"jnp.take_along_axis({x}, {order}[..., ::-1], axis=-1)", x)
    elif kind in ("top_k", "approx"):
        function = "lax.top_k" if kind == "top_k" else "lax.approx_max_k"
        best, where = w.name("best largest"), w.name("places positions")
        w.line(f"{best}, {where} = {function}({x}, {k})")
        shape = (*x.shape[:-1], k)
        values = w.make(best, x, shape=shape)
        places = Value(f"{where}.astype({jnp_dtype(dtype)})", dtype, shape, 0, last)
        y = binary(w, values, places)
    elif kind == "multi":
        other = w.array("payload weights", w.floating(), x.shape)
        first, second = w.name("keys_sorted ordered"), w.name("carried payload_sorted")
        w.line(f"{first}, {second} = lax.sort(({x}, {other}), num_keys=1)")
        y = w.make(second, other)
        w.let("gaps", w.make(f"jnp.max({first}, axis=-1)", x, shape=x.shape[:-1]))
        gaps = w.lines[-1].split(" = ")[0].strip()
        w.give(y, w.make(gaps, x, shape=x.shape[:-1]))
        return
    elif kind == "rank":
        ranks = f"jnp.argsort(jnp.argsort({x}, axis=-1), axis=-1).astype({jnp_dtype(dtype)})"
        y = binary(w, w.let("ranks", Value(ranks, dtype, x.shape, 0, last)), x)
    elif kind == "quantile":
        wide = w.let("wide", w.make(f"{x}.astype(jnp.float32)", x, dtype="float32"))
        q = w.pick(("0.25", "0.5", "0.75", "0.9"))
        shape = x.shape[:-1]
        y = w.make(f"jnp.quantile({wide}, {q}, axis=-1)", wide, shape=shape)
    else:
        bins = w.size(4, 16)
        edges = f"jnp.linspace(-3.0, 3.0, {bins}, dtype={jnp_dtype(dtype)})"
        name = w.let("edges", Value(edges, dtype, (bins,)))
        function = w.pick(("jnp.searchsorted({e}, {x})", "jnp.digitize({x}, {e})"))
        bucket = w.let("bucket", Value(function.format(e=name, x=x), "int64", x.shape, 0, bins))
        spelled = f"{bucket}.astype({jnp_dtype(dtype)})"
        y = binary(w, Value(spelled, dtype, x.shape, 0, bins), x)
    leave(w, w.let("result ordered", y), [x], 4)


@template("windows", "reductions", 3)
def windows(w: Writer) -> None:
    """Write reductions over sliding windows."""
    dtype = w.wide()
    x = prepare(w, w.array("image signal field", dtype, w.shape(1, 3, 16)), 1)
    x = w.let("inner", x)
    sizes = [min(size, w.between(1, 3)) for size in x.shape]
    sizes[-1] = min(x.shape[-1], max(2, sizes[-1]))
    strides = [w.pick((1, 1, 2)) for _ in x.shape]
    same = w.chance(0.4)
    shape = tuple(
        -(-size // stride) if same else (size - width) // stride + 1
        for size, width, stride in zip(x.shape, sizes, strides, strict=True)
    )
    operation, start = w.pick(
        (("add", "0.0"), ("max", "-jnp.inf"), ("min", "jnp.inf"), ("mul", "1.0"), ("own", "0.0"))
    )
    spelled = [
        f"({', '.join(map(str, each))}{',' if x.rank == 1 else ''})" for each in (sizes, strides)
    ]
    function = f"lax.{operation}"
    if operation == "own":
        function = w.name("combine accumulate")
        with w.nested(f"{function}(left, right)"):
            w.line("return jnp.hypot(left, right)")
    if operation in ("own", "mul"):
        w.blocked(x)
    bound = x.bound ** math.prod(sizes) if operation == "mul" else x.bound * math.prod(sizes)
    if operation == "mul" and bound > 1e3:
        x = w.let("squashed", w.make(f"jnp.tanh({x})", x, low=-1, high=1))
        bound = 1.0
    window, steps = (
        w.let("window", Value(spelled[0], "", ())),
        w.let("steps", Value(spelled[1], "", ())),
    )
    padding = '"SAME"' if same else '"VALID"'
    text = f"lax.reduce_window({x}, {start}, {function}, {window}, {steps}, {padding})"
    if operation in ("own", "mul"):
        zero = w.let(
            "start",
            Value(
                f"jnp.{'ones' if operation == 'mul' else 'zeros'}((), {jnp_dtype(dtype)})",
                dtype,
                (),
            ),
        )
        text = text.replace(f", {start},", f", {zero},")
    y = w.let("pooled", w.make(text, x, shape=shape, low=-bound, high=bound))
    w.words += [{"add": "sum", "own": "norm", "mul": "product"}.get(operation, operation), "pool"]
    w.words.append(w.pick(("windows", "image", "signal")))
    w.title = f"Pool windows of size {spelled[0].replace(',)', ')')} with {function}"
    leave(w, y, [], 4)


@template("norms and distances", "reductions")
def distances(w: Writer) -> None:
    """Write norms, similarities and divergences of two arrays."""
    dtype = w.floating()
    shape = w.shape(1, 3, 32)
    x, y = w.array("x points predictions", dtype, shape), w.array("y targets labels", dtype, shape)
    kind = w.pick(
        ("squared", "absolute", "cosine", "huber", "kl", "log_cosh", "hinge", "chebyshev")
    )
    one, other = prepare(w, x, 1), prepare(w, y, 1)
    text = {
        "squared": "({x} - {y}) ** 2",
        "absolute": "jnp.abs({x} - {y})",
        "cosine": "{x} * {y}",
        "huber": "jnp.where(jnp.abs({x} - {y}) < 1.0, 0.5 * ({x} - {y}) ** 2, jnp.abs({x} - {y}))",
        "kl": "jnp.exp({x}) * ({x} - {y})",
        "log_cosh": "jnp.log(jnp.cosh(jnp.clip({x} - {y}, -4.0, 4.0)))",
        "hinge": "jax.nn.relu(1.0 - {x} * {y})",
        "chebyshev": "jnp.abs({x} - {y})",
    }[kind]
    if kind == "kl":
        parts = []
        for part in (one, other):
            value = w.make(
                f"jax.nn.log_softmax({calm(w, part, 15)}, axis=-1)", part, low=-25, high=0
            )
            parts.append(w.let("log_p log_q", value))
        one, other = parts
    if kind == "huber":
        gap = w.let("gap", w.make(f"{x} - {y}", x, y, low=-9, high=9))
        text = f"jnp.where(jnp.abs({gap}) < 1.0, 0.5 * {power(gap.text, 2)}, jnp.abs({gap}) - 0.5)"
        one, other = x, y
    one, other = calm(w, one, 12), calm(w, other, 12)
    one, other = w.short(one, "left"), w.short(other, "right")
    bound = (one.bound + other.bound) ** 2 if kind in ("squared", "hinge") else 60
    text = text.format(x=one if kind in ("kl",) else one.atom, y=other.atom)
    terms = w.let("terms losses", w.make(text, one, other, low=-bound, high=bound))
    terms = calm(w, terms)
    result, names = reduced(w, w.short(terms, "scaled"), w.pick((None, x.rank - 1)))
    w.words += [kind, w.pick(("loss", "distance", "divergence", "error"))]
    w.title = f"Compute a {kind.replace('_', '-')} {w.words[-1]}"
    if kind == "cosine" and w.chance(0.5):
        size = f"jnp.linalg.norm({one}) * jnp.linalg.norm({other}) + 1e-3"
        scale = w.let("norms", w.make(size, one, other, shape=(), low=0.01, high=100))
        total = w.let(names, result)
        result = w.make(f"{total} / {scale}", total, scale, low=-50, high=50)
    leave(w, w.let(names, result), [], 3)


@template("normalisation", "reductions")
def normalisation(w: Writer) -> None:
    """Write normalised arrays and functions of them."""
    x = prepare(w, w.array(DATA, w.floating(), w.shape(1, 4, 24)), 1)
    words = []
    for _ in range(w.between(1, 2)):
        value, names = normalised(w, x)
        words.append(names.split()[0])
        x = w.let(names, value)
        x = w.let("reshaped mapped", chain(w, x, 1))
    w.words = [*dict.fromkeys(words), w.pick(("rows", "features", "scores"))]
    w.title = f"Compute {words[0].replace('_', ' ')} values and functions of them"
    leave(w, x, [], 3)


@template("selection", "reductions", 4)
def selection(w: Writer) -> None:
    """Write positions of extreme elements of direct arguments."""
    dtype = w.floating() if w.chance(0.6) else w.dtype(*INTEGERS)
    x = w.array("scores votes heights", dtype, w.shape(1, 4, 24))
    axis = w.between(0, x.rank - 1)
    kind = w.pick(
        ("jnp.argmax", "jnp.argmin", "lax.argmax", "lax.argmin", "count", "any", "nonzero")
    )
    shape = without(x.shape, axis)
    if kind.startswith("jnp"):
        text, result, high = f"{kind}({x}, axis={axis})", "int64", x.shape[axis]
    elif kind.startswith("lax"):
        result = w.index()
        text, high = f"{kind}({x}, {axis}, {jnp_dtype(result)})", x.shape[axis]
    else:
        mask = w.let("mask", compare(w, x))
        result, high = ("bool", 1) if kind == "any" else ("int64", x.shape[axis])
        text = f"jnp.{'any' if kind == 'any' else 'sum'}({mask}, axis={axis})"
        if kind == "nonzero":
            text = f"jnp.count_nonzero({mask}, axis={axis})"
    y = Value(text, result, shape, 0, high, is_exact=True)
    place = w.let("place winner", y)
    name = kind.split(".")[-1]
    w.words += [name, w.pick(("of_scores", "along_axis", "positions", "winner"))]
    w.title = f"Find {name} along axis {axis}"
    if dtype not in INTEGERS and w.chance(0.6):
        values, names = reduced(w, x, axis)
        number = f"{place}.astype({jnp_dtype(dtype)})"
        y = binary(w, w.let(names, values), Value(number, dtype, shape, 0, high))
        leave(w, w.let("mixed", y), [], 3)
        return
    leave(w, place, [], 2)
