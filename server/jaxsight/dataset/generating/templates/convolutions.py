"""Templates of convolutions, pooling and image operations."""

from __future__ import annotations

import math

from jaxsight.dataset.generating.elementwise import chain
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, prepare
from jaxsight.dataset.generating.types import Value
from jaxsight.dataset.generating.writer import Writer


def convolved(
    size: int, width: int, stride: int, dilation: int, same: bool, low: int, high: int
) -> int:
    """Return the size of a convolved dimension."""
    if same:
        return -(-size // stride)
    return (size + low + high - (width - 1) * dilation - 1) // stride + 1


def dilated(size: int, dilation: int) -> int:
    """Return the size of a dimension with holes between its elements."""
    return (size - 1) * dilation + 1


@template("general convolution", "convolutions", 4)
def general(w: Writer) -> None:
    """Write `lax.conv_general_dilated` with strides, dilations, groups and layouts."""
    dtype = w.floating()
    rank = w.pick((1, 2, 2, 2, 3))
    groups = w.pick((1, 1, 1, 2))
    batch, inner, outer = w.between(1, 3), groups * w.between(1, 3), groups * w.between(1, 3)
    spatial = [w.pick((5, 6, 7, 8, 9)) for _ in range(rank)] if rank < 3 else [5, 4, 4]
    widths = [w.pick((1, 2, 3)) for _ in range(rank)]
    letters = "DHW"[3 - rank :]
    last = w.chance(0.5)
    layout = (
        (f"N{letters}C", f"{letters}IO", f"N{letters}C")
        if last
        else (f"NC{letters}", f"OI{letters}", f"NC{letters}")
    )
    x_shape = (batch, *spatial, inner) if last else (batch, inner, *spatial)
    k_shape = (*widths, inner // groups, outer) if last else (outer, inner // groups, *widths)
    x = prepare(w, w.array("images x inputs", dtype, x_shape), 1)
    k = w.array("kernel filters", dtype, k_shape)
    strides = [w.pick((1, 1, 2)) for _ in range(rank)]
    rhs = [w.pick((1, 1, 2)) if size > 4 else 1 for size in spatial]
    lhs = [w.pick((1, 1, 1, 2)) for _ in range(rank)] if groups == 1 else [1] * rank
    same = w.chance(0.4) and lhs == [1] * rank
    pads = [(w.between(0, 2), w.between(0, 2)) for _ in range(rank)]
    sizes = [
        convolved(dilated(size, hole), width, stride, spread, same, low, high)
        for size, hole, width, stride, spread, (low, high) in zip(
            spatial, lhs, widths, strides, rhs, pads, strict=True
        )
    ]

    def tuple_of(numbers: list[int]) -> str:
        return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"

    padding = '"SAME"' if same else f"[{', '.join(map(str, pads))}]"
    options = [f"padding={padding}"]
    words = []
    if rhs != [1] * rank:
        options.append(f"rhs_dilation={tuple_of(rhs)}")
        words.append("dilated")
    if lhs != [1] * rank:
        options.append(f"lhs_dilation={tuple_of(lhs)}")
        words.append("transposed")
    if groups > 1:
        options.append(f"feature_group_count={groups}")
        words.append("grouped")
    spelled = ", ".join(f'"{part}"' for part in layout)
    options.append(f"dimension_numbers=({spelled})")
    if w.chance(0.15):
        options.append("precision=lax.Precision.HIGHEST")
    options.insert(0, f"window_strides={tuple_of(strides)}")
    text = f"lax.conv_general_dilated({x}, {k}, {', '.join(options)})"
    shape = (batch, *sizes, outer) if last else (batch, outer, *sizes)
    fan = math.prod(widths) * inner // groups
    bound = 2.5 * math.sqrt(fan) * max(1.0, x.bound / 2)
    name = w.name("features convolved response")
    w.line(f"{name} = {text}")
    y = w.make(name, x, k, shape=shape, low=-bound, high=bound)
    if w.chance(0.4):
        b_shape = (outer,) if last else (outer, *([1] * rank))
        b = w.array("bias offset", dtype, b_shape)
        y = w.let("biased", w.make(f"{y} + {b}", y, b, low=-bound - 5, high=bound + 5))
    y = w.let("activated", calm(w, chain(w, calm(w, y), w.between(0, 2))))
    if w.chance(0.3):
        second = w.array("second_kernel pointwise", dtype, (outer, 3))
        spelled = "...c,co->...o" if last else "bc...,co->bo..."
        text = f'jnp.einsum("{spelled}", {y}, {second})'
        shape = (*y.shape[:-1], 3) if last else (batch, 3, *sizes)
        y = w.let("mixed", w.make(text, y, second, shape=shape, low=-40, high=40))
    w.words += [*words, f"conv{rank}d", w.pick(("features", "layer", "response"))]
    w.title = f"Convolve {'volumes' if rank == 3 else 'images' if rank == 2 else 'sequences'}"
    if words:
        w.title += f" with {' and '.join(words)} kernels"
    leave(w, y, [], 3)


@template("simple convolution", "convolutions", 3)
def simple(w: Writer) -> None:
    """Write `jnp.convolve`, `lax.conv` and functions of SciPy."""
    dtype = w.wide()
    kind = w.pick(("convolve", "correlate", "lax", "signal", "transpose", "batched", "separable"))
    w.words += [kind, w.pick(("signal", "filter", "smooth"))]
    w.title = f"Filter a signal with {kind.replace('lax', 'lax.conv')}"
    if kind in ("convolve", "correlate", "batched"):
        n, k = w.size(6, 32), w.between(2, 5)
        rows = w.size(2, 6)
        x = prepare(w, w.array("signal series", dtype, (rows, n) if kind == "batched" else (n,)), 1)
        kernel = w.array("kernel window", dtype, (k,))
        mode = w.pick(("same", "valid", "full"))
        size = {"same": n, "valid": n - k + 1, "full": n + k - 1}[mode]
        if kind == "batched":
            w.transformations.add("vmap")
            text = f'jax.vmap(lambda row: jnp.convolve(row, {kernel}, mode="{mode}"))({x})'
        else:
            text = f'jnp.{kind}({x}, {kernel}, mode="{mode}")'
        y = w.make(text, x, kernel, shape=(*x.shape[:-1], size), low=-25, high=25)
    elif kind == "signal":
        n, m = w.size(5, 12), w.size(5, 12)
        x = prepare(w, w.array("image field", dtype, (n, m)), 1)
        kernel = w.array("kernel stencil", dtype, (3, 2))
        mode = w.pick(("same", "valid", "full"))
        shape = {"same": (n, m), "valid": (n - 2, m - 1), "full": (n + 2, m + 1)}[mode]
        text = f'jax.scipy.signal.convolve2d({x}, {kernel}, mode="{mode}")'
        y = w.make(text, x, kernel, shape=shape, low=-30, high=30)
    elif kind == "separable":
        n, m = w.size(5, 12), w.size(5, 12)
        x = w.array("image field", dtype, (n, m))
        one, other = w.array("row_kernel", dtype, (3,)), w.array("column_kernel", dtype, (3,))
        w.transformations.add("vmap")
        with w.nested("filter_with(kernel, lines)"):
            w.line('return jax.vmap(lambda line: jnp.convolve(line, kernel, mode="same"))(lines)')
        w.line(f"rows = filter_with({one}, {x})")
        y = w.make(f"filter_with({other}, rows.T).T", x, one, other, low=-50, high=50)
    else:
        batch, inner, outer = w.between(1, 3), w.between(1, 3), w.between(1, 4)
        n, m = w.pick((5, 6, 8)), w.pick((5, 6, 8))
        x = prepare(w, w.array("images x", dtype, (batch, inner, n, m)), 1)
        if kind == "lax":
            filters = w.array("kernel filters", dtype, (outer, inner, 3, 3))
            stride = w.pick((1, 2))
            text = f'lax.conv({x}, {filters}, ({stride}, {stride}), "VALID")'
            shape4 = (batch, outer, (n - 3) // stride + 1, (m - 3) // stride + 1)
        else:
            filters = w.array("kernel filters", dtype, (2, 2, inner, outer))
            w.line(f"channels_last = jnp.moveaxis({x}, 1, -1)")
            text = f'lax.conv_transpose(channels_last, {filters}, (2, 2), "SAME")'
            shape4 = (batch, 2 * n, 2 * m, outer)
        y = w.make(text, x, filters, shape=shape4, low=-40, high=40)
    leave(w, calm(w, w.let("filtered", y)), [], 4)


@template("pooling", "convolutions", 3)
def pooling(w: Writer) -> None:
    """Write pooling of images by windows, reshapes or strides."""
    dtype = w.wide()
    batch, channels = w.between(1, 3), w.between(1, 4)
    n, m = w.pick((4, 6, 8)), w.pick((4, 6, 8))
    x = prepare(w, w.array("images features", dtype, (batch, n, m, channels)), 1)
    x = w.let("maps", calm(w, x))
    kind = w.pick(("max", "average", "reshape", "global", "min", "overlap", "scatter"))
    w.words += [kind, "pool", w.pick(("images", "features", "maps"))]
    w.title = f"Pool images with {kind} windows"
    kind = "max" if kind == "min" and x.low == 0 else kind
    half = (batch, n // 2, m // 2, channels)
    window = "(1, 2, 2, 1)"
    if kind in ("max", "min"):
        start = "-jnp.inf" if kind == "max" else "jnp.inf"
        text = f'lax.reduce_window({x}, {start}, lax.{kind}, {window}, {window}, "VALID")'
        y = w.make(text, x, shape=half)
    elif kind == "average":
        text = f'lax.reduce_window({x}, 0.0, lax.add, {window}, {window}, "VALID") / 4.0'
        y = w.make(text, x, shape=half)
    elif kind == "reshape":
        text = f"{x}.reshape({batch}, {n // 2}, 2, {m // 2}, 2, {channels})"
        w.line(f"tiles = {text}")
        y = w.make(
            f"{w.pick(('jnp.max', 'jnp.mean', 'jnp.min'))}(tiles, axis=(2, 4))", x, shape=half
        )
    elif kind == "global":
        y = w.make(
            f"{w.pick(('jnp.max', 'jnp.mean'))}({x}, axis=(1, 2))", x, shape=(batch, channels)
        )
    elif kind == "overlap":
        text = f'lax.reduce_window({x}, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")'
        y = w.make(text, x)
    else:
        w.transformations.add("grad")
        with w.nested("pooled_total(maps)"):
            text = f'lax.reduce_window(maps, -jnp.inf, lax.max, {window}, {window}, "VALID")'
            w.line(f"pooled = {text}")
            w.line("return jnp.sum(jnp.sin(pooled))")
        y = w.make(f"jax.grad(pooled_total)({x}) + 0.1 * {x}", x, low=-2, high=2)
    y = w.let("pooled", y)
    leave(w, y, [x] if y.shape == x.shape else [], 4)


@template("image operations", "convolutions", 2)
def images(w: Writer) -> None:
    """Write resizing, gradients, patches and flips of images."""
    dtype = w.wide()
    n, m, channels = w.pick((4, 6, 8)), w.pick((4, 6, 8)), w.between(1, 4)
    x = prepare(
        w, w.array("image frame", dtype, (n, m, channels), w.pick(("uniform", "normal"))), 1
    )
    x = w.let("picture", calm(w, x))
    kind = w.pick(("resize", "sobel", "patches", "augment", "laplace", "upsample", "normalize"))
    w.words += [kind, w.pick(("image", "frame", "picture"))]
    w.title = f"Process an image: {kind}"
    if kind == "resize":
        method = w.pick(("linear", "cubic", "nearest", "lanczos3"))
        shape = (n * 2, m // 2, channels)
        text = f'jax.image.resize({x}, ({n * 2}, {m // 2}, {channels}), "{method}")'
        y = w.make(text, x, shape=shape, low=1.5 * x.low - 1, high=1.5 * x.high + 1)
    elif kind == "sobel":
        w.line(f"dx = {x}[:, 1:] - {x}[:, :-1]")
        w.line(f"dy = {x}[1:] - {x}[:-1]")
        y = w.make(
            "jnp.sqrt(dx[1:] ** 2 + dy[:, 1:] ** 2 + 1e-3)",
            x,
            shape=(n - 1, m - 1, channels),
            low=0.03,
            high=15,
        )
    elif kind == "patches":
        w.line(f"tiles = {x}.reshape({n // 2}, 2, {m // 2}, 2, {channels})")
        count = (n // 2) * (m // 2)
        y = w.make(
            f"tiles.transpose(0, 2, 1, 3, 4).reshape({count}, -1)", x, shape=(count, 4 * channels)
        )
    elif kind == "augment":
        flag = w.array("flip_it", "bool", ())
        y = w.make(
            f"jnp.where({flag}, jnp.fliplr({x}), {w.pick(('jnp.flipud', 'jnp.abs'))}({x}))", x
        )
    elif kind == "laplace":
        mode = w.pick(("edge", "wrap", "reflect"))
        w.line(f'padded = jnp.pad({x}, ((1, 1), (1, 1), (0, 0)), mode="{mode}")')
        w.line("vertical = padded[2:, 1:-1] + padded[:-2, 1:-1]")
        w.line("horizontal = padded[1:-1, 2:] + padded[1:-1, :-2]")
        y = w.make(f"vertical + horizontal - 4.0 * {x}", x, low=8 * x.low, high=8 * x.high + 1)
    elif kind == "upsample":
        y = w.make(
            f"jnp.repeat(jnp.repeat({x}, 2, axis=0), 2, axis=1)", x, shape=(2 * n, 2 * m, channels)
        )
    else:
        mean = w.let("mean", Value(f"jnp.mean({x}, axis=(0, 1))", dtype, (channels,)))
        y = w.make(f"({x} - {mean}) / (jnp.std({x}, axis=(0, 1)) + 0.1)", x, low=-9, high=9)
    leave(w, calm(w, w.let("processed", y)), [], 4)
