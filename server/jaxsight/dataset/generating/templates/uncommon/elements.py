"""Templates of nearest elements, windows, running extremes, checks, and buffers to be filled."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import chain, compare, tree
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import as_float, leave, prepare
from jaxsight.dataset.generating.types import INTEGERS, Value, jnp_dtype
from jaxsight.dataset.generating.vocabulary import DATA
from jaxsight.dataset.generating.writer import Writer


@template("nearest elements", "reductions", 2)
def nearest(w: Writer) -> None:
    """Write searches for the nearest of some points, and what follows from it."""
    dtype, k, d = w.wide(), w.size(2, 12), w.size(2, 8)
    n = w.size(3, 24)
    points = w.array("points samples queries", dtype, (n, d))
    centers = w.array("centers codebook anchors", dtype, (k, d))
    gaps = w.make(f"{points}[:, None, :] - {centers}[None, :, :]", points, shape=(n, k, d))
    gaps = w.let("gaps", gaps.within(-9, 9))
    metric, text = w.pick(
        (
            ("euclidean", "jnp.sum(jnp.square({g}), axis=-1)"),
            ("manhattan", "jnp.sum(jnp.abs({g}), axis=-1)"),
            ("chebyshev", "jnp.max(jnp.abs({g}), axis=-1)"),
            ("soft", "jnp.sum(jnp.log1p(jnp.square({g})), axis=-1)"),
        )
    )
    value = w.make(text.format(g=gaps), gaps, shape=(n, k), low=0, high=9.0 * d)
    distances = w.let("distances costs", value)
    function = w.pick(
        ("jnp.argmin({x}, axis=1)", "jnp.argmin({x}, axis=-1)", "lax.argmin({x}, 1, jnp.int32)")
    )
    label = Value(function.format(x=distances), "int32", (n,), 0, k)
    label = w.let("nearest assignment labels", label)
    kind = w.pick(("quantize", "residual", "cost", "counts", "update", "mask"))
    if kind == "quantize":
        y = w.make(f"{centers}[{label}]", centers, shape=(n, d))
    elif kind == "residual":
        text = f"{points} - {centers}[{label}]"
        y = w.make(text, points, centers, shape=(n, d), low=-6, high=6)
    elif kind == "cost":
        text = f"jnp.take_along_axis({distances}, {label}[:, None], axis=1)[:, 0]"
        y = w.make(text, distances, shape=(n,))
    elif kind == "counts":
        text = f"jnp.bincount({label}, length={k}).astype({jnp_dtype(dtype)})"
        y = Value(text, dtype, (k,), 0, n)
    elif kind == "update":
        w.line(f"sums = jax.ops.segment_sum({points}, {label}, num_segments={k})")
        w.line(f"members = jnp.bincount({label}, length={k})[:, None]")
        text = "sums / jnp.maximum(members, 1).astype(sums.dtype)"
        y = w.make(text, points, shape=(k, d))
    else:
        text = f"jax.nn.one_hot({label}, {k}, dtype={jnp_dtype(dtype)})"
        chosen = w.let("chosen", Value(text, dtype, (n, k), 0, 1))
        y = w.make(f"{chosen} * {distances}", distances)
    w.words += ["nearest", metric, kind]
    w.title = f"Find the nearest centers by {metric} distance ({kind})"
    leave(w, calm(w, w.let("result", y)), [points] if y.shape == points.shape else [], 4)


REAL_WINDOWS = (
    ("product", "lax.mul", "1.0", (-1.0, 1.0)),
    ("log_sum", "jnp.logaddexp", "-jnp.inf", (-2.0, 6.0)),
    ("norm", "jnp.hypot", "0.0", (0.0, 6.0)),
)
INTEGER_WINDOWS = (
    ("product", "lax.mul", "1"),
    ("union", "lax.bitwise_or", "0"),
    ("parity", "lax.bitwise_xor", "0"),
)


@template("windows of other operations", "reductions", 3)
def windows(w: Writer) -> None:
    """Write reductions over windows by products, norms and operators on bits."""
    is_real = w.chance(0.6)
    dtype = w.wide() if is_real else w.dtype(*INTEGERS)
    x = w.array("image signal field codes", dtype, w.shape(1, 3, 16))
    low, high = 0.0, 1e6
    if is_real:
        w.blocked(x)
        name, function, start, (low, high) = w.pick(REAL_WINDOWS)
        source = w.let("bounded", w.make(f"jnp.tanh({prepare(w, x, 1)})", x, low=-1, high=1))
    else:
        name, function, start = w.pick(INTEGER_WINDOWS)
        source = w.let("mixed", tree(w, [x], w.between(1, 2))) if w.chance(0.6) else x
    sizes = [min(size, w.between(1, 3)) for size in x.shape]
    sizes[-1] = 2
    strides = [w.pick((1, 1, 2)) for _ in x.shape]
    same = w.chance(0.5)
    shape = tuple(
        -(-size // stride) if same else (size - width) // stride + 1
        for size, width, stride in zip(x.shape, sizes, strides, strict=True)
    )
    start = w.let("start", Value(f"jnp.array({start}, {jnp_dtype(dtype)})", dtype, ())).text
    window, steps = (f"({', '.join(map(str, each))},)" for each in (sizes, strides))
    if x.rank > 1:
        window, steps = (each.replace(",)", ")") for each in (window, steps))
    padding = '"SAME"' if same else '"VALID"'
    window = w.let("window", Value(window, "", ())).text
    text = f"lax.reduce_window({source}, {start}, {function}, {window}, {steps}, {padding})"
    y = w.let("pooled windows", w.make(text, source, shape=shape, low=low, high=high))
    w.words += [name, "of_windows", w.pick(("image", "signal", "field"))]
    w.title = f"Reduce windows of an array with {function}"
    if not is_real and w.chance(0.4):
        y = w.let("levels", as_float(w, y))
    leave(w, y, [], 4)


@template("running extremes", "indexing", 3)
def extremes(w: Writer) -> None:
    """Write largest and smallest values by index."""
    dtype = w.wide() if w.chance(0.75) else w.dtype("int32", "int64", "uint32")
    rows, count, tail = w.size(3, 16), w.size(3, 24), w.shape(0, 1, 6)
    values = w.array("values scores messages", dtype, (count, *tail))
    index = w.array("ids groups cells", w.index(), (count,), f"integers:{rows}")
    updates = w.let("updates", calm(w, prepare(w, values, 1)))
    side = w.pick(("max", "max", "min"))
    kind = w.pick(("at", "at", "segment", "lax"))
    floor = -int(updates.bound) - 2 if dtype != "uint32" else 0
    fill = str(-floor if side == "min" and dtype != "uint32" else floor)
    if dtype == "uint32" and side == "min":
        fill = "200"
    start = f"jnp.full({(rows, *tail)}, {fill}, {jnp_dtype(dtype)})"
    bound = max(abs(int(fill)), updates.bound)
    if kind == "at":
        if w.chance(0.5):
            state = w.array("records state best", dtype, (rows, *tail))
            start = state.text
        start = w.let("start", Value(start, dtype, (rows, *tail))).text
        text = f"{start}.at[{index}].{side}({updates})"
    elif kind == "segment":
        text = f"jax.ops.segment_{side}({updates}, {index}, num_segments={rows})"
        value = w.let("by_group", w.make(text, updates, shape=(rows, *tail)))
        clip = "maximum" if side == "max" else "minimum"
        text = f"jnp.{clip}({value}, {fill})"
    else:
        start = w.let("start", Value(start, dtype, (rows, *tail))).text
        window = f"({', '.join(map(str, range(1, 1 + len(tail))))}{',' if tail else ''})"
        numbers = w.name("numbers")
        w.line(
            f"{numbers} = lax.ScatterDimensionNumbers(update_window_dims={window}, "
            "inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))"
        )
        text = f"lax.scatter_{side}({start}, {index}[:, None], {updates}, {numbers})"
    y = w.make(text, updates, shape=(rows, *tail), low=-bound, high=bound)
    w.words += [side, "by_index", w.pick(("records", "groups", "cells"))]
    w.title = f"Keep the {'largest' if side == 'max' else 'smallest'} values by index"
    leave(w, w.let("extreme", y), [], 4)


@template("checks", "reductions", 2)
def checks(w: Writer) -> None:
    """Write tests whether all elements fulfil a condition."""
    dtype = w.floating()
    x = w.array(DATA, dtype, w.shape(1, 3, 12))
    axis = w.between(0, x.rank - 1)
    kind = w.pick(("all", "finite", "reduce", "bounded"))
    if kind == "finite":
        mask = Value(f"jnp.isfinite({x})", "bool", x.shape)
    elif kind == "bounded":
        mask = Value(f"jnp.abs({x}) < {w.pick(('1.5', '2.0', '3.0'))}", "bool", x.shape)
    else:
        mask = compare(w, x)
    mask = w.let("mask", mask)
    text = f"jnp.all({mask}, axis={axis}, keepdims=True)"
    if kind == "reduce":
        text = f"jnp.expand_dims(lax.reduce_and({mask}, axes=({axis},)), {axis})"
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    valid = w.let("is_valid", Value(text, "bool", shape))
    scale = w.let("scaled", calm(w, chain(w, x, w.between(1, 2))))
    y = w.make(f"jnp.where({valid}, {scale}, 0.5 * {x})", scale, x)
    w.words += ["check", kind, w.pick(("rows", "columns", "values"))]
    w.title = f"Keep what fulfils a condition along all of axis {axis}"
    leave(w, w.let("kept", y), [], 4)


@template("filled buffers", "loops", 2)
def buffers(w: Writer) -> None:
    """Write loops that fill a buffer without initial values."""
    dtype = w.wide()
    n, tail = w.size(2, 8), w.shape(0, 1, 8)
    x = w.array("inputs frames rows", dtype, (n, *tail))
    start = w.array("state carry offset", dtype, tail)
    w.words += ["fill", w.pick(("buffer", "history", "trace"))]
    w.title = "Fill a buffer with the states of a recurrence"
    w.line(f"empty = lax.empty({x}.shape, {x}.dtype)")
    name = w.name("fill record write")
    with w.nested(f"{name}(step, carry)"):
        w.line("history, state = carry")
        row = w.let("row", Value(f"{x}[step]", dtype, tail, x.low, x.high, True))
        state = Value("state", dtype, tail, -1, 1, True)
        total = w.let("total", w.make(f"{row} + 0.5 * {state}", row, low=-6, high=6))
        changed = w.let("changed", calm(w, chain(w, total, w.between(1, 2))))
        w.line(f"state = jnp.tanh({changed})")
        w.line("return history.at[step].set(state), state")
    w.line(f"filled, last = lax.fori_loop(0, {n}, {name}, (empty, {start}))")
    y = w.make("filled", x, low=-1, high=1)
    if w.chance(0.5):
        y = w.let("shifted", w.make("filled + last", y, low=-2, high=2))
    leave(w, y, [x], 4)
