"""Steps of programs that change shapes: reductions, normalisations, movements, combinations."""

from __future__ import annotations

import math
from dataclasses import replace

from jaxsight.dataset.generating.elementwise import (
    binary,
    compare,
    scaled,
    unary_names,
)
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.types import (
    COMPLEX,
    PRODUCT,
    SUM,
    Value,
    jnp_dtype,
    operand,
    power,
    real_dtype,
    sized,
    without,
)
from jaxsight.dataset.generating.writer import Writer


def axis_of(w: Writer, x: Value) -> int:
    """Return an axis, mostly the last one, as a person writes it."""
    axis = x.rank - 1 if w.chance(0.5) else w.between(0, x.rank - 1)
    return -1 if axis == x.rank - 1 and w.chance(0.8) else axis


def as_float(w: Writer, x: Value, dtype: str | None = None) -> Value:
    """Return a value converted to real numbers of moderate size."""
    if x.is_float and dtype in (None, x.dtype):
        return x
    if x.dtype in COMPLEX:
        kind = w.pick(("jnp.abs({x})", "jnp.real({x})", "jnp.imag({x})", "jnp.angle({x})"))
        low, high = (0.0, 1.5 * x.bound) if "abs" in kind else (-x.bound, x.bound)
        if "angle" in kind:
            low, high = -3.2, 3.2
        return w.make(kind.format(x=x), x, dtype=real_dtype(x.dtype), low=low, high=high)
    dtype = dtype or "float32"
    if x.is_integer and x.bound > 200:
        x = w.make(f"{operand(x.text, PRODUCT)} % 16", x, low=0, high=15, is_exact=True)
    text = f"{x.atom}.astype({jnp_dtype(dtype)})"
    return w.make(text, x, dtype=dtype, is_exact=True)


def reduced(w: Writer, x: Value, axis: int | None, keeps: bool = False) -> tuple[Value, str]:
    """Return a reduction of a value, and names for it."""
    shape = () if axis is None else without(x.shape, axis)
    count = x.size if axis is None else x.shape[axis]
    if keeps:
        shape = (1,) * x.rank if axis is None else sized(x.shape, axis, 1)
    where = "" if axis is None else f", axis={axis}"
    where += ", keepdims=True" if keeps else ""
    text, names, low, high, dtype = _reduction(w, x, count, where)
    exact = any(part in text for part in (".max(", ".min(", ".any(", ".all("))
    value = w.make(text, x, shape=shape, low=low, high=high, dtype=dtype, is_exact=exact)
    return value, names


def _reduction(w: Writer, x: Value, count: int, where: str) -> tuple[str, str, float, float, str]:
    if x.dtype == "bool":
        text = f"jnp.sum({x}{where})"
        if count <= 4 and x.rank > 1 and "axis" in where:
            text = w.pick((f"jnp.any({x}{where})", f"jnp.all({x}{where})"))
        if "sum" in text:
            return text, "count hits", 0, count, "int64"
        return text, "flags", 0, 1, "bool"
    if x.is_integer:
        kind = w.pick(("sum", "max", "min", "prod", "max"))
        if kind in ("sum", "prod"):
            wide = f"dtype={x.atom}.dtype" if x.text.isidentifier() else f"dtype=jnp.{x.dtype}"
            return f"jnp.{kind}({x}{where}, {wide})", "total", -1e9, 1e9, x.dtype
        return (
            f"jnp.{kind}({x}{where})",
            f"{'largest' if kind == 'max' else 'smallest'}",
            x.low,
            (x.high),
            x.dtype,
        )
    if x.dtype in COMPLEX:
        kind = w.pick(("mean", "sum"))
        high = x.bound * (1 if kind == "mean" else 3 * math.sqrt(count))
        return f"jnp.{kind}({x}{where})", "total average", -high, high, x.dtype
    return _float_reduction(w, x, count, where)


def _float_reduction(
    w: Writer, x: Value, count: int, where: str
) -> tuple[str, str, float, float, str]:
    spread = count * x.bound if x.low * x.high >= 0 else 3 * math.sqrt(count) * x.bound
    options = [
        ("jnp.mean({x}{w})", "average mean", x.low, x.high),
        ("jnp.mean({x}{w})", "average mean", x.low, x.high),
        ("jnp.sum({x}{w})", "total", -spread if x.low < 0 else 0, spread if x.high > 0 else 0),
        ("jnp.max({x}{w})", "largest peak", x.low, x.high),
        ("jnp.min({x}{w})", "smallest", x.low, x.high),
        ("jnp.var({x}{w})", "variance", 0, x.bound**2),
        ("jnp.mean({q}{w})", "energy", 0, x.bound**2),
        ("jnp.sqrt(jnp.mean({q}{w}) + 1e-3)", "rms", 0.03, x.bound + 1),
        ("jnp.mean(jnp.abs({x}){w})", "size", 0, x.bound),
    ]
    if x.bound < 20:
        high = x.high + math.log(count)
        options.append(("jax.nn.logsumexp({x}{w})", "log_total log_normalizer", x.low, high))
        options.append(("jnp.std({x}{w})", "deviation", 0, x.bound))
        options.append(("jnp.ptp({x}{w})", "spread", 0, 2 * x.bound))
    if x.bound <= 1.05 and count <= 12:
        options.append(("jnp.prod({x}{w})", "product", -1.5, 1.5))
    if x.bound <= 5 and count <= 16:
        options.append(("jnp.prod(1.0 + 0.1 * {p}{w})", "product growth", 0.0, 6.0))
    if x.is_wide and count < 2000:
        options.append(("jnp.median({x}{w})", "median", x.low, x.high))
    if x.low == 0:
        options = [each for each in options if "jnp.min" not in each[0]]
    if x.is_level:
        options = [each for each in options if "jnp.max" in each[0] or "{q}" in each[0]][:3]
    text, names, low, high = w.pick(options)
    if "{q}" in text and "sqrt" not in text and x.bound > 14:
        text, low, high = "jnp.max({x}{w})", x.low, x.high
    if "var(" in text and x.bound > 14:
        text, low, high = "jnp.mean({x}{w})", x.low, x.high
    text = text.format(x=x, w=where, q=power(x.text, 2), p=operand(x.text, PRODUCT))
    return text, names, low, high, x.dtype


def reduce_names(w: Writer, x: Value) -> tuple[Value, str]:
    """Return a reduction over one axis, or all of them, and names for it."""
    everything = x.rank == 1 or (w.chance(0.2) and x.dtype not in ("bfloat16", "float16"))
    return reduced(w, calm(w, w.short(x, "inner", 40)), None if everything else axis_of(w, x))


def normalised(w: Writer, x: Value) -> tuple[Value, str]:
    """Return a float value normalised along an axis, and names for it."""
    x = w.let("features inner", x)
    axis = axis_of(w, x)
    tail = f"axis={axis}"
    kind = w.between(0, 6)
    if kind <= 1:
        small = calm(w, x, 15)
        value = w.make(f"jax.nn.softmax({small}, {tail})", x, low=0, high=1, is_level=True)
        return value, "weights probabilities"
    if kind == 2:
        small = calm(w, x, 15)
        text = f"jax.nn.log_softmax({small}, {tail})"
        return w.make(text, x, low=-30, high=0), "log_probabilities"
    mean = f"jnp.mean({x}, {tail}, keepdims=True)"
    if kind == 3:
        value = w.make(f"{x} - {mean}", x, low=-2 * x.bound, high=2 * x.bound, is_level=True)
        return value, "centered"
    if kind == 4 or x.bound > 40:
        text = f"{x} / (jnp.max(jnp.abs({x}), {tail}, keepdims=True) + 1e-3)"
        return w.make(text, x, low=-1, high=1), "normalized"
    if kind == 5:
        text = f"{x} * lax.rsqrt(jnp.mean({power(x.text, 2)}, {tail}, keepdims=True) + 1e-3)"
        return w.make(text, x, low=-8, high=8), "normalized"
    deviation = f"jnp.std({x}, {tail}, keepdims=True)"
    centered = w.let("centered", w.make(f"{x} - {mean}", x, low=-2 * x.bound, high=2 * x.bound))
    value = w.make(f"{centered} / ({deviation} + 0.1)", centered, low=-8, high=8, is_level=True)
    return value, "standardized normalized"


def moved(w: Writer, x: Value) -> tuple[Value, str]:
    """Return a value with its elements moved, and names for it."""
    axis = axis_of(w, x)
    size = x.shape[axis]
    options = [
        (f"jnp.flip({x}, axis={axis})", x.shape, "reversed_values flipped"),
        (f"jnp.roll({x}, {w.between(1, 3)}, axis={axis})", x.shape, "shifted rolled"),
    ]
    if x.rank > 1:
        order = list(range(x.rank))
        w.random.shuffle(order)
        if order == sorted(order):
            order.reverse()
        shape = tuple(x.shape[each] for each in order)
        spelled = f"({', '.join(map(str, order))})"
        options += [
            (f"jnp.transpose({x}, {spelled})", shape, "transposed"),
            (f"jnp.swapaxes({x}, 0, -1)", (x.shape[-1], *x.shape[1:-1], x.shape[0]), "swapped"),
            (f"{x.atom}.T", x.shape[::-1], "transposed"),
            (f"jnp.moveaxis({x}, 0, -1)", (*x.shape[1:], x.shape[0]), "moved"),
        ]
        if x.rank < 4:
            options.append((f"{x.atom}.reshape(-1)", (x.size,), "flat"))
        merged = (x.shape[0], x.size // x.shape[0])
        if x.rank > 2:
            options.append((f"{x.atom}.reshape({merged[0]}, -1)", merged, "flat rows"))
    if size >= 4 and size % 2 == 0 and axis == -1:
        halves = (*x.shape[:-1], 2, size // 2)
        lead = "".join(f"{each}, " for each in x.shape[:-1])
        options.append((f"{x.atom}[..., ::2]", (*x.shape[:-1], size // 2), "strided evens"))
        options.append((f"{x.atom}[..., 1:]", (*x.shape[:-1], size - 1), "tail rest"))
        options.append((f"{x.atom}[..., :{size // 2}]", sized(x.shape, -1, size // 2), "head"))
        if x.rank < 4:
            options.append((f"{x.atom}.reshape({lead}2, {size // 2})", halves, "folded pairs"))
    if x.size <= 2048:
        options += _grown(w, x, axis, size)
    text, shape, names = w.pick(options)
    ends = (min(x.low, 0), max(x.high, 0)) if "pad" in text else (x.low, x.high)
    value = w.make(text, x, shape=shape, low=ends[0], high=ends[1], is_exact=True)
    return value, names


def _grown(w: Writer, x: Value, axis: int, size: int) -> list[tuple[str, tuple[int, ...], str]]:
    widths = ["(0, 0)"] * x.rank
    widths[axis] = f"({w.between(0, 2)}, {w.between(1, 2)})"
    added = sum(int(part) for part in widths[axis].strip("()").split(", "))
    spelled = f"({', '.join(widths)})" if x.rank > 1 else f"({widths[0]},)"
    mode = "" if w.chance(0.5) or not size > 3 else w.pick((', mode="edge"', ', mode="reflect"'))
    options = [
        (f"jnp.pad({x}, {spelled}{mode})", sized(x.shape, axis, size + added), "padded"),
        (f"jnp.repeat({x}, 2, axis={axis})", sized(x.shape, axis, 2 * size), "repeated"),
    ]
    if x.text.isidentifier():
        twice = sized(x.shape, axis, 2 * size)
        options.append((f"jnp.concatenate([{x}, {x}[::-1]], axis={axis})", twice, "mirrored"))
        if x.rank < 4:
            both = (2, *x.shape)
            options.append((f"jnp.stack([{x}, jnp.flip({x}, axis=0)])", both, "stacked pairs"))
    if x.rank < 4:
        options.append((f"{x.atom}[..., None]", (*x.shape, 1), "column expanded"))
    return options


def scanned(w: Writer, x: Value) -> tuple[Value, str]:
    """Return a cumulative function or a sorted form of a float value, and names for it."""
    axis = axis_of(w, x)
    size = x.shape[axis]
    options = [
        (f"jnp.cumsum({x}, axis={axis})", "running_total", size * x.bound),
        (f"lax.cummax({x}, axis={axis % x.rank})", "running_max", x.bound),
        (f"lax.cummin({x}, axis={axis % x.rank})", "running_min", x.bound),
        (f"jnp.sort({x}, axis={axis})", "ordered sorted_values", x.bound),
        (f"jnp.diff({x}, axis={axis})", "steps changes", 2 * x.bound),
    ]
    if x.bound < 20:
        options.append((f"lax.cumlogsumexp({x}, axis={axis % x.rank})", "running_log", 30))
    if x.bound <= 1.1:
        options.append((f"jnp.cumprod({x}, axis={axis})", "running_product", 1.2**size))
    text, names, high = w.pick(options if size > 2 else options[1:4])
    shape = sized(x.shape, axis, size - 1) if "diff" in text else x.shape
    return w.make(text, x, shape=shape, low=-high if x.low < 0 else min(x.low, 0), high=high), names


def combined(w: Writer, x: Value, others: list[Value]) -> tuple[Value, str] | None:
    """Return a function of a value and one of the others, where a shape fits."""
    fitting = [
        other
        for other in others
        if other.dtype == x.dtype and other.text != x.text and _fits(other.shape, x.shape)
    ]
    if not fitting:
        return None
    other = w.pick(fitting)
    return binary(w, x, other), "combined mixed blended"


def _fits(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    tail = large[len(large) - len(small) :] if len(small) <= len(large) else None
    return tail is not None and all(
        one in (1, other) for one, other in zip(small, tail, strict=True)
    )


def step(w: Writer, x: Value, others: list[Value]) -> tuple[Value, str]:
    """Return a value after one random step, and names for it."""
    if x.dtype == "bool":
        return (
            reduced(w, x, None if not x.rank or w.chance(0.3) else axis_of(w, x))
            if (x.rank)
            else (as_float(w, x), "indicator")
        )
    both = combined(w, x, others) if w.chance(0.3) else None
    if both is not None:
        return both
    if not x.rank or not x.is_float:
        if x.rank and w.chance(0.2):
            return reduced(w, w.short(x, "inner", 40), axis_of(w, x))
        if x.rank and w.chance(0.5):
            return moved(w, w.short(x, "inner", 40))
        if x.dtype not in COMPLEX and not x.is_float and x.low >= -1e6 and w.chance(0.15):
            return compare(w, w.short(x, "inner")), "mask flags"
        if x.dtype in COMPLEX and w.chance(0.3):
            return as_float(w, w.short(x, "inner", 40)), "magnitude phase"
        return unary_names(w, w.short(x, "inner", 40))
    kind = w.random.random()
    x = calm(w, w.short(x, "inner", 40))
    x = w.short(x, "inner", 40)
    if kind < 0.34:
        return unary_names(w, x)
    if kind < 0.44:
        return scaled(w, x), "scaled"
    if kind < 0.6:
        return reduce_names(w, x)
    if kind < 0.72:
        return normalised(w, x)
    if kind < 0.9:
        return moved(w, x)
    return scanned(w, x)


def prepare(w: Writer, x: Value, most: int = 2) -> Value:
    """Return a value of the same type after up to `most` random steps that keep its shape."""
    for _ in range(w.between(0, most)):
        kind = w.random.random()
        if x.rank and kind < 0.25 and x.dtype != "bool":
            axis = axis_of(w, x)
            pattern = w.pick(("jnp.flip({x}, axis={a})", "jnp.roll({x}, {k}, axis={a})"))
            text = pattern.format(x=w.short(x, "inner"), a=axis, k=w.between(1, 3))
            x = w.let("shifted turned", w.make(text, x, is_exact=True))
        elif x.rank and kind < 0.45 and x.is_float:
            value, names = normalised(w, x)
            x = w.let(names, replace(value, is_level=False))
        elif kind < 0.6 and x.is_float:
            x = w.let("scaled", scaled(w, x))
        elif x.is_float:
            value, names = unary_names(w, x)
            x = w.let(names, calm(w, value))
        else:
            x = w.let("encoded mapped", unary_names(w, x)[0])
    return x


def finish(w: Writer, x: Value, others: list[Value] | None = None, most: int = 4) -> Value:
    """Return a value after up to `most` random steps, each one assigned to a name."""
    others = list(others or [])
    for _ in range(w.between(0, most)):
        if not x.rank and x.dtype in ("bfloat16", "float16"):
            break
        if x.size > 16384:
            x, names = reduce_names(w, w.let("output", x))
        else:
            x, names = step(w, x, others)
        if x.is_level and x.rank and w.chance(0.5):
            x = w.make(power(x.text, 2), x, low=0, high=x.bound**2)
        x = w.let(names, x)
        others.append(x)
    return x


def leave(w: Writer, x: Value, others: list[Value] | None = None, most: int = 4) -> None:
    """Write the end of a function: some random steps, and what it returns."""
    x = finish(w, x, others, most)
    extra = [other for other in others or [] if other.text.isidentifier() and other.text != x.text]
    kind = w.random.random()
    if kind < 0.08 and extra and extra[-1].text not in w.parameters:
        w.give(x, extra[-1])
    elif kind < 0.16 and x.is_float and x.rank:
        value, _ = reduce_names(w, replace(x, is_level=False) if not x.is_level else x)
        w.give(x, w.let("summary", value))
    elif kind < 0.24 and x.is_float:
        value, names = unary_names(w, x)
        w.give(w.short(value, names, 60))
    else:
        w.give(x)


def linear(w: Writer, x: Value, weights: Value, names: str = "projected hidden") -> Value:
    """Return a value multiplied with a matrix, scaled to stay moderate."""
    inner, outer = weights.shape
    form = w.pick(("{a} @ {w}", "jnp.dot({x}, {w})", "jnp.matmul({x}, {w})", "einsum"))
    if form == "einsum":
        letters = "btn"[: x.rank - 1] if x.rank < 5 else ""
        form = (
            f'jnp.einsum("{letters}i,ij->{letters}j", {{x}}, {{w}})'
            if x.rank < 5
            else ("{a} @ {w}")
        )
    text = form.format(x=x, a=operand(x.text, PRODUCT), w=weights)
    bound = 2.5 * math.sqrt(inner) * x.bound / 2
    shape = (*x.shape[:-1], outer)
    value = w.make(text, x, weights, shape=shape, low=-bound, high=bound)
    if bound > 20:
        root = round(math.sqrt(inner), 3)
        scale = w.pick((f"{operand(value.text, PRODUCT)} / {root}", f"{root} ** -0.5"))
        if "**" in scale:
            scale = f"{operand(value.text, PRODUCT)} * {inner}**-0.5"
        value = w.make(scale, value, low=-bound / root, high=bound / root)
    return w.let(names, value)


def add(w: Writer, x: Value, y: Value) -> Value:
    """Return a sum."""
    text = f"{operand(x.text, SUM)} + {operand(y.text, PRODUCT)}"
    shape = x.shape if x.rank >= y.rank else y.shape
    return w.make(text, x, y, shape=shape, low=x.low + y.low, high=x.high + y.high)
