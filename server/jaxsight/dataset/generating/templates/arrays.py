"""Templates that create, move and join arrays."""

from __future__ import annotations

import math

from jaxsight.dataset.generating.elementwise import binary, chain, compare, tree
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import as_float, leave, moved, prepare
from jaxsight.dataset.generating.types import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    Value,
    jnp_dtype,
    sized,
)
from jaxsight.dataset.generating.vocabulary import DATA
from jaxsight.dataset.generating.writer import Writer


def any_dtype(w: Writer) -> str:
    """Return any dtype, half of the time that of a real number."""
    return w.floating() if w.chance(0.5) else w.dtype(*INTEGERS, *COMPLEX, "bool")


@template("movement", "array", 3)
def movement(w: Writer) -> None:
    """Write a chain of movements of elements."""
    x = prepare(w, w.array(DATA, any_dtype(w), w.shape(2, 5, 12)), 1)
    words = []
    for _ in range(w.between(1, 4)):
        value, names = moved(w, x)
        words.append(names.split()[0])
        x = w.let(names, value)
        if w.chance(0.3):
            x = chain(w, x, 1)
            x = w.let("mapped", x)
    w.words = [*dict.fromkeys(words)][:3] or ["arrange"]
    w.words.append("array")
    w.title = f"Rearrange an array: {', '.join(each.replace('_', ' ') for each in w.words[:-1])}"
    leave(w, x, [], 2)


@template("joining", "array")
def joining(w: Writer) -> None:
    """Write a concatenation or a stack of arrays of one type."""
    dtype, shape = any_dtype(w), w.shape(1, 4, 10)
    count = w.between(2, 4)
    kind = w.pick(("concatenate", "stack", "hstack", "vstack", "append"))
    count = 2 if kind == "append" else count
    names = w.pick(("first second third fourth", "head body tail rest", "left middle right end"))
    axis = w.between(0, len(shape) - 1)
    values = []
    for name in names.split()[:count]:
        extent = w.size(2, 10) if kind in ("concatenate", "append") else shape[axis]
        values.append(w.array(name, dtype, sized(shape, axis, extent)))
    parts = [prepare(w, value, 1) for value in values]
    listed = ", ".join(part.text for part in parts)
    total = sum(part.shape[axis] for part in parts)
    text, joined = {
        "concatenate": (f"jnp.concatenate([{listed}], axis={axis})", sized(shape, axis, total)),
        "append": (f"jnp.append({listed}, axis={axis})", sized(shape, axis, total)),
        "stack": (
            f"jnp.stack([{listed}], axis={axis})",
            (*shape[:axis], len(parts), *shape[axis:]),
        ),
        "hstack": (f"jnp.hstack([{listed}])", _tiled(shape, 0 if len(shape) == 1 else 1, parts)),
        "vstack": (
            f"jnp.vstack([{listed}])",
            (len(parts), *shape) if len(shape) == 1 else _tiled(shape, 0, parts),
        ),
    }[kind]
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    value = w.make(text, *parts, shape=joined, low=low, high=high, is_exact=True)
    x = w.let("joined merged", value)
    w.words += [kind, w.pick(("parts", "pieces", "arrays", "blocks"))]
    w.title = f"Join {len(parts)} arrays with {kind} along axis {axis}"
    leave(w, x, [], 4)


def _tiled(shape: tuple[int, ...], axis: int, parts: list[Value]) -> tuple[int, ...]:
    return sized(shape, axis, shape[axis] * len(parts))


@template("padding and slicing", "array", 3)
def padding(w: Writer) -> None:
    """Write pads, slices, splits and windows."""
    dtype = any_dtype(w)
    x = prepare(w, w.array(DATA, dtype, w.shape(1, 4, 16)), 1)
    w.words = []
    for _ in range(w.between(1, 3)):
        kind = w.pick((_lax_pad, _lax_slice, _split, _strided, _windows, _tile))
        x = kind(w, x)
        if x.size > 8192:
            break
    w.words = [*dict.fromkeys(w.words)]
    w.title = f"{w.words[0].capitalize()} an array" + (
        f", then {', '.join(w.words[1:])} it" if len(w.words) > 1 else ""
    )
    w.words.append(w.pick(("edges", "borders", "blocks", "frames")))
    leave(w, x, [], 3)


def _zero(x: Value) -> str:
    if x.dtype == "bool":
        return "False"
    return f"jnp.zeros((), {jnp_dtype(x.dtype)})"


def _lax_pad(w: Writer, x: Value) -> Value:
    x = w.let("inner", x)
    w.words.append("pad")
    widths, shape = [], []
    for size in x.shape:
        low, high, inner = w.between(-1, 2), w.between(0, 2), w.pick((0, 0, 1, 2))
        low = 0 if size < 3 else low
        widths.append(f"({low}, {high}, {inner})")
        shape.append(size + low + high + inner * (size - 1))
    spelled = f"({', '.join(widths)})" if len(widths) > 1 else f"({widths[0]},)"
    if x.rank > 3:
        spelled = w.let("widths", w.make(spelled, x)).text
    if x.dtype == "bool":
        text = f"lax.pad({x}, jnp.array(False), {spelled})"
    else:
        zero = w.let("fill zero", w.make(_zero(x), x))
        text = f"lax.pad({x}, {zero}, {spelled})"
    ends = (min(0.0, x.low), max(0.0, x.high))
    value = w.make(text, x, shape=tuple(shape), low=ends[0], high=ends[1], is_exact=True)
    return w.let("padded", value)


def _lax_slice(w: Writer, x: Value) -> Value:
    w.words.append("slice")
    starts = [w.between(0, size // 3) for size in x.shape]
    stops = [size - w.between(0, size // 4) for size in x.shape]
    strides = [w.pick((1, 1, 2)) for _ in x.shape]
    shape = tuple(
        math.ceil((stop - start) / stride)
        for start, stop, stride in zip(starts, stops, strides, strict=True)
    )

    def spelled(numbers: list[int]) -> str:
        return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"

    text = f"lax.slice({x}, {spelled(starts)}, {spelled(stops)}, {spelled(strides)})"
    value = w.make(text, x, shape=shape, is_exact=True)
    return w.let("window part", value)


def _split(w: Writer, x: Value) -> Value:
    x = w.let("inner", x)
    axis = w.between(0, x.rank - 1)
    size = x.shape[axis]
    if size % 2 or size < 4:
        return _strided(w, x)
    w.words.append("split")
    one, other = w.name("upper front first_half"), w.name("lower back second_half")
    if w.chance(0.5):
        w.line(f"{one}, {other} = jnp.split({x}, 2, axis={axis})")
    else:
        w.line(f"{one}, {other} = lax.split({x}, ({size // 2}, {size // 2}), axis={axis})")
    shape = sized(x.shape, axis, size // 2)
    halves = [w.make(name, x, shape=shape, is_exact=True) for name in (one, other)]
    return w.let("merged halves", binary(w, *halves))


def _strided(w: Writer, x: Value) -> Value:
    w.words.append("stride")
    axis = w.between(0, x.rank - 1)
    size = x.shape[axis]
    stop, shape = w.pick(((":", size), ("::2", math.ceil(size / 2)), ("::-1", size)))
    lead = ":, " * axis
    x = w.let("inner", x)
    text = f"{x}[{lead}{stop}]"
    if stop == ":":
        text = f"lax.rev({x}, ({axis},))"
    value = w.make(text, x, shape=sized(x.shape, axis, shape), is_exact=True)
    return w.let("strided every_other reversed_part", value)


def _windows(w: Writer, x: Value) -> Value:
    x = w.let("inner", x)
    if x.rank > 2 or x.shape[0] < 5 or x.dtype in ("bool",):
        return _strided(w, x)
    w.words.append("window")
    width = w.between(2, 4)
    count = x.shape[0] - width + 1
    index = w.let(
        "positions",
        Value(
            f"jnp.arange({count})[:, None] + jnp.arange({width})[None, :]", "int64", (count, width)
        ),
    )
    value = w.make(f"{x}[{index}]", x, shape=(count, width, *x.shape[1:]), is_exact=True)
    return w.let("windows frames", value)


def _tile(w: Writer, x: Value) -> Value:
    w.words.append("tile")
    times = [w.pick((1, 2, 3)) for _ in x.shape]
    shape = tuple(size * count for size, count in zip(x.shape, times, strict=True))
    spelled = f"({', '.join(map(str, times))}{',' if len(times) == 1 else ''})"
    return w.let("tiled", w.make(f"jnp.tile({x}, {spelled})", x, shape=shape, is_exact=True))


@template("creation", "array")
def creation(w: Writer) -> None:
    """Write arrays of coordinates that an argument modulates."""
    dtype = w.wide()
    rows, columns = w.size(2, 24), w.size(2, 24)
    amplitude = w.array("amplitude scale gain", dtype, w.pick(((), (columns,))))
    spelled = jnp_dtype(dtype)
    kind = w.pick(("linspace", "arange", "iota", "meshgrid", "eye", "tri", "logspace"))
    shape: tuple[int, ...] = (rows, columns)
    if kind == "linspace":
        text = f"jnp.linspace(-1.0, 1.0, {columns}, dtype={spelled})"
        grid, shape = w.let("grid", Value(text, dtype, (columns,), -1, 1)), (columns,)
    elif kind == "logspace":
        text = f"jnp.logspace(-1.0, 1.0, {columns}, dtype={spelled})"
        grid, shape = w.let("grid", Value(text, dtype, (columns,), 0.1, 10)), (columns,)
    elif kind == "arange":
        text = f"jnp.arange({columns}, dtype={spelled})"
        grid, shape = w.let("steps", Value(text, dtype, (columns,), 0, columns)), (columns,)
    elif kind == "iota":
        axis = w.between(0, 1)
        text = f"lax.broadcasted_iota({spelled}, ({rows}, {columns}), {axis})"
        grid = w.let("rows", Value(text, dtype, shape, 0, 64))
    elif kind == "meshgrid":
        for name, size in (("height", rows), ("width", columns)):
            w.line(f"{name} = jnp.linspace(0.0, 1.0, {size}, dtype={spelled})")
        order = w.pick(("ij", "xy"))
        w.line(f'grid_y, grid_x = jnp.meshgrid(height, width, indexing="{order}")')
        shape = shape if order == "ij" else (columns, rows)
        if order == "xy" and amplitude.shape:
            shape = shape[::-1]
            w.lines[-1] = w.lines[-1].replace("(height, width", "(width, height")
        parts = [Value(name, dtype, shape, 0, 1) for name in ("grid_y", "grid_x")]
        grid = w.let("surface", binary(w, *parts))
    else:
        offset = w.between(-1, 1)
        function = "eye" if kind == "eye" else "tri"
        text = f"jnp.{function}({rows}, {columns}, k={offset}, dtype={spelled})"
        grid = w.let("pattern", Value(text, dtype, shape, 0, 1))
        amplitude_part = amplitude
    amplitude_part = amplitude
    wave = chain(w, grid.named(grid.text), w.between(0, 2)) if kind != "eye" else grid
    wave = w.short(wave, "wave", 50)
    bound = max(4.5, wave.bound * 4.5)
    text = f"{amplitude_part} * {wave.atom}"
    value = w.make(text, amplitude_part, wave, shape=shape, low=-bound, high=bound)
    x = w.let("surface field_values", value)
    w.words += ["modulated", kind]
    w.title = f"Modulate a pattern made by {kind}"
    leave(w, x, [], 4)


@template("broadcasting", "array")
def broadcasting(w: Writer) -> None:
    """Write outer functions of vectors, by broadcasting."""
    dtype = w.floating() if w.chance(0.7) else w.dtype(*INTEGERS)
    n, m = w.size(2, 32), w.size(2, 32)
    names = w.pick(("rows columns", "points centers", "queries keys", "sources sinks")).split()
    batch = w.shape(0, 1, 6) if w.chance(0.4) else ()
    x, y = w.array(names[0], dtype, (*batch, n)), w.array(names[1], dtype, (*batch, m))
    x, y = prepare(w, x, 1), prepare(w, y, 1)
    left = w.make(f"{x.atom}[..., :, None]", x, shape=(*batch, n, 1), is_exact=True)
    right = w.make(f"{y.atom}[..., None, :]", y, shape=(*batch, 1, m), is_exact=True)
    if w.chance(0.4):
        left, right = w.let("column", left), w.let("row", right)
    if w.chance(0.15) and not batch:
        text = f"jnp.broadcast_to({x}[:, None], ({n}, {m}))"
        left = w.let("column", w.make(text, x, shape=(n, m), is_exact=True))
    table = w.let("table outer", binary(w, left, right))
    if w.chance(0.4):
        table = w.let("scores", tree(w, [table], 2))
    w.words += [w.pick(("outer", "pairwise", "table")), names[0], names[1]]
    w.title = f"Combine all {names[0]} with all {names[1]}"
    leave(w, table, [], 4)


@template("conversion", "array")
def conversion(w: Writer) -> None:
    """Write conversions between dtypes, with functions in between."""
    start = w.dtype(*FLOATS, *INTEGERS, "bool")
    x = w.array(DATA, start, w.shape(0, 5, 12))
    target = w.dtype("float32", "float64", "bfloat16", "float16")
    y = prepare(w, x, 1) if start != "bool" else x
    if y.is_float and w.chance(0.5):
        if y.is_exact:
            flags = w.let("flags", compare(w, y))
            y = w.let(
                "sign_values",
                w.make(
                    f"{flags}.astype({jnp_dtype(start)})",
                    flags,
                    x,
                    dtype=start,
                    low=0,
                    high=1,
                    is_smooth=False,
                ),
            )
        function = w.pick(("lax.convert_element_type({x}, {d})", "jnp.asarray({x}, {d})"))
        text = function.format(x=y, d=jnp_dtype(target))
        z = w.let("converted", w.make(text, y, dtype=target))
    else:
        z = w.let("converted", as_float(w, y, target))
    w.words += ["convert", start, "to", target]
    w.title = f"Convert {start} values to {target}"
    leave(w, z, [], 4)
