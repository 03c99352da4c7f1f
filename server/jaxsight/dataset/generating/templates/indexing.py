"""Templates that read and write elements by index."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import binary, chain, compare
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, prepare
from jaxsight.dataset.generating.types import INTEGERS, Value, jnp_dtype
from jaxsight.dataset.generating.vocabulary import DATA
from jaxsight.dataset.generating.writer import Writer


def table_dtype(w: Writer) -> str:
    """Return the dtype of a table."""
    return w.floating() if w.chance(0.75) else w.dtype(*INTEGERS, "complex64")


@template("lookup", "indexing", 3)
def lookup(w: Writer) -> None:
    """Write reads of rows by index arrays."""
    dtype = table_dtype(w)
    rows, tail = w.size(3, 32), w.shape(0, 2, 12)
    table = prepare(w, w.array("table embeddings codebook", dtype, (rows, *tail)), 1)
    shape = w.shape(0, 2, 8)
    index = w.array("ids tokens indices", w.index(), shape, f"integers:{rows}")
    kind = w.pick(("index", "take", "clip", "fill", "lax", "computed", "two"))
    source = table
    result = (*shape, *tail)
    if kind == "computed":
        text = w.pick((f"({index} + 1) % {rows}", f"{rows - 1} - {index}", f"{index} // 2"))
        index = w.let("positions", w.make(text, index, is_exact=True))
    if kind in ("index", "computed"):
        text = f"{source.atom}[{index}]"
    elif kind == "take":
        text = f"jnp.take({source}, {index}, axis=0)"
    elif kind == "clip":
        text = f'jnp.take({source}, {index}, axis=0, mode="clip")'
    elif kind == "fill":
        text = f'{source.atom}.at[{index}].get(mode="fill", fill_value=0)'
    elif kind == "two":
        other = w.array("other_ids neighbors", index.dtype, shape, f"integers:{rows}")
        first = w.let("first", w.make(f"{source}[{index}]", source, shape=result))
        second = w.let("second", w.make(f"{source}[{other}]", source, shape=result))
        text = binary(w, first, second).text if dtype not in INTEGERS else f"{first} + {second}"
    else:
        numbers = w.name("dimension_numbers")
        offsets = tuple(range(len(shape), len(shape) + len(tail)))
        spelled = f"({', '.join(map(str, offsets))}{',' if len(offsets) == 1 else ''})"
        w.line(
            f"{numbers} = lax.GatherDimensionNumbers(offset_dims={spelled}, "
            "collapsed_slice_dims=(0,), start_index_map=(0,))"
        )
        sizes = f"({', '.join(map(str, (1, *tail)))}{',' if not tail else ''})"
        text = f"lax.gather({source}, {index}[..., None], {numbers}, {sizes})"
    x = w.let("rows looked_up", w.make(text, source, shape=result, is_exact=kind != "two"))
    if x.is_float:
        x = w.let("mapped", calm(w, chain(w, x, w.between(0, 2))))
    w.words += [w.pick(("lookup", "gather", "embed")), kind, w.pick(("rows", "entries", "ids"))]
    w.title = f"Look up entries of a table by index ({kind})"
    leave(w, x, [], 4)


@template("scatter", "indexing", 7)
def scatter(w: Writer) -> None:
    """Write updates of an array at index arrays."""
    dtype = w.floating() if w.chance(0.8) else w.dtype("int32", "int64", "uint32", "int16")
    rows, tail, count = w.size(4, 24), w.shape(0, 2, 8), w.size(2, 12)
    x = w.array("state buffer totals histogram", dtype, (rows, *tail))
    unique = count <= rows and w.chance(0.4)
    rule = f"integers:{rows}"
    index = w.array("ids indices segments", w.index(), (count,), rule)
    updates = prepare(w, w.array("updates messages increments", dtype, (count, *tail)), 1)
    updates = w.let("changes", calm(w, updates))
    kind = w.pick(
        (
            "add",
            "max",
            "min",
            "max",
            "min",
            "multiply",
            "set",
            "subtract",
            "apply",
            "divide",
            "lax",
            "lax",
        )
    )
    if kind in ("divide", "apply") and dtype in INTEGERS:
        kind = "add"
    if kind in ("multiply", "divide", "set", "apply"):
        # Duplicates would be applied in no fixed order.
        text = f"jnp.unique({index}, size={min(count, rows)}, fill_value={rows})"
        del text
        index = w.let("places", Value(f"jnp.arange({min(count, rows)}) * 1", "int64", (count,)))
        w.lines.pop()
        w.names.discard(index.text)
        start = next(name for name in w.parameters if name in ("ids", "indices", "segments"))
        count2 = min(count, rows)
        del unique
        text = f"({start}[0] + jnp.arange({count2})) % {rows}"
        index = w.let("places", Value(text, "int64", (count2,), 0, rows))
        if count2 < count:
            updates = w.let("used", w.make(f"{updates}[:{count2}]", updates, shape=(count2, *tail)))
    high = x.bound + updates.bound * (count if kind in ("add", "subtract") else 1)
    suffix = ", unique_indices=True" if kind in ("multiply", "divide") else ""
    if kind == "multiply":
        high = x.bound * max(1, updates.bound)
    if kind == "divide":
        divisor = w.make(f"jnp.abs({updates}) + 0.5", updates, low=0.5)
        updates, high = w.let("divisors", divisor), 2 * x.bound
    if kind == "lax":
        numbers = w.name("numbers")
        offsets = tuple(range(1, 1 + len(tail)))
        spelled = f"({', '.join(map(str, offsets))}{',' if len(offsets) == 1 else ''})"
        w.line(
            f"{numbers} = lax.ScatterDimensionNumbers(update_window_dims={spelled}, "
            "inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))"
        )
        function = w.pick(("scatter_add", "scatter_max", "scatter_sub", "scatter_sub"))
        text = f"lax.{function}({x}, {index}[:, None], {updates}, {numbers})"
        high = x.bound + updates.bound * count
    elif kind == "apply":
        text = f'{x}.at[{index}].add({updates}, mode="drop")'
        if w.chance(0.5):
            text = f"{x}.at[{index}].add({updates}, indices_are_sorted=False, unique_indices=True)"
    else:
        text = f"{x}.at[{index}].{kind}({updates}{suffix})"
    value = w.make(text, x, updates, low=-high if x.low < 0 else 0, high=high)
    y = w.let("updated", value)
    w.words += [f"scatter_{kind}", w.pick(("updates", "messages", "rows", "segments"))]
    w.title = f"Update rows of an array at indices ({kind})"
    leave(w, y, [], 4)


@template("segments", "indexing")
def segments(w: Writer) -> None:
    """Write sums and other reductions by segment."""
    dtype = w.floating()
    count, groups, tail = w.size(4, 32), w.size(2, 8), w.shape(0, 1, 6)
    x = prepare(w, w.array("values messages weights", dtype, (count, *tail)), 1)
    x = w.let("terms", calm(w, x, 10))
    index = w.array("segment_ids groups labels", w.index(), (count,), f"integers:{groups}")
    kind = w.pick(("sum", "mean", "softmax", "bincount", "one_hot", "max"))
    shape = (groups, *tail)
    bound = x.bound * count
    w.words += ["segment", kind, w.pick(("pool", "values", "groups"))]
    w.title = f"Compute a {kind.replace('_', ' ')} by segment"
    total = f"jax.ops.segment_sum({{x}}, {index}, num_segments={groups})"
    if kind == "sum":
        y = w.make(total.format(x=x), x, shape=shape, low=-bound, high=bound)
    elif kind == "max":
        text = f"jax.ops.segment_max({x}, {index}, num_segments={groups})"
        largest = w.let("largest", w.make(text, x, shape=shape))
        y = w.make(f"jnp.maximum({largest}, {min(x.low, -5.0) - 1:.1f})", largest, low=-50)
    elif kind == "mean":
        w.line(f"totals = {total.format(x=x)}")
        w.line(f"counts = {total.format(x=f'jnp.ones_like({x})')}")
        y = w.make("totals / jnp.maximum(counts, 1.0)", x, shape=shape)
    elif kind == "softmax":
        w.line(f"exponents = jnp.exp({x} - jnp.max({x}, axis=0))")
        w.line(f"totals = {total.format(x='exponents')}")
        y = w.make(f"exponents / totals[{index}]", x, low=0, high=1)
    elif kind == "bincount":
        text = f"jnp.bincount({index}, length={groups}).astype({jnp_dtype(dtype)})"
        counts = w.let("counts", Value(text, dtype, (groups,), 0, count))
        y = w.make(
            f"jnp.mean({x}, axis=0)[..., None] * {counts}",
            x,
            shape=(*tail, groups),
            low=-bound,
            high=bound,
        )
    else:
        text = f"jax.nn.one_hot({index}, {groups}, dtype={jnp_dtype(dtype)})"
        hot = w.let("one_hot", Value(text, dtype, (count, groups), 0, 1))
        y = w.make(f"{hot}.T @ {x}", x, shape=shape, low=-bound, high=bound)
    leave(w, w.let("pooled", y), [], 4)


@template("dynamic slices", "indexing", 3)
def dynamic(w: Writer) -> None:
    """Write slices and updates at positions that are arguments."""
    dtype = table_dtype(w)
    shape = w.shape(1, 3, 16)
    x = prepare(w, w.array(DATA, dtype, shape), 1)
    x = w.let("source", x)
    axis = w.between(0, x.rank - 1)
    size = w.between(1, max(1, x.shape[axis] - 1))
    room = x.shape[axis] - size + 1
    start = w.array("start offset position", w.index(), (), f"integers:{max(room, 2)}")
    part = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    kind = w.pick(("slice", "in_dim", "update", "index", "full", "set"))
    w.words += ["dynamic", kind, w.pick(("window", "rows", "block"))]
    w.title = f"Read or write a window of {size} along axis {axis}"
    if kind == "slice":
        zeros = ["0"] * x.rank
        zeros[axis] = start.text
        sizes = f"({', '.join(map(str, part))}{',' if x.rank == 1 else ''})"
        starts = f"({', '.join(zeros)}{',' if x.rank == 1 else ''})"
        if x.rank > 1:
            w.line(f"zero = jnp.zeros_like({start})")
            starts = starts.replace("0", "zero")
        y = w.make(f"lax.dynamic_slice({x}, {starts}, {sizes})", x, shape=part, is_exact=True)
    elif kind == "in_dim":
        text = f"lax.dynamic_slice_in_dim({x}, {start}, {size}, axis={axis})"
        y = w.make(text, x, shape=part, is_exact=True)
    elif kind in ("update", "full"):
        block = w.array("block patch", dtype, part)
        text = f"lax.dynamic_update_slice_in_dim({x}, {block}, {start}, axis={axis})"
        ends = (min(x.low, block.low), max(x.high, block.high))
        y = w.make(text, x, block, low=ends[0], high=ends[1])
    elif kind == "index":
        text = f"lax.dynamic_index_in_dim({x}, {start}, axis={axis}, keepdims=False)"
        y = w.make(text, x, shape=(*x.shape[:axis], *x.shape[axis + 1 :]), is_exact=True)
    else:
        lead = ":, " * axis
        text = f"{x}.at[{lead}{start}].set({w.pick(('0', '1', '2'))})"
        y = w.make(text, x)
    leave(w, w.let("window_values", y), [], 4)


@template("along an axis", "indexing")
def along(w: Writer) -> None:
    """Write `take_along_axis`, masks and permutations."""
    dtype = w.floating()
    n, m = w.size(2, 16), w.size(3, 16)
    x = prepare(w, w.array("scores logits values", dtype, (n, m)), 1)
    x = w.let("source", x)
    kind = w.pick(("along", "permute", "pick", "mask", "diagonal", "inverse", "where_set"))
    w.words += ["select", kind, w.pick(("scores", "values", "columns"))]
    w.title = f"Select elements of a matrix ({kind.replace('_', ' ')})"
    if kind == "along":
        k = w.between(1, m - 1)
        index = w.array("columns choices", w.index(), (n, k), f"integers:{m}")
        text = f"jnp.take_along_axis({x}, {index}, axis=1)"
        y = w.make(text, x, shape=(n, k), is_exact=True)
    elif kind in ("permute", "inverse"):
        order = w.array("permutation order", w.index(), (m,), "permutation")
        text = f"{x}[:, {order}]" if kind == "permute" else f"{x}[:, jnp.argsort({order})]"
        y = w.make(text, x, is_exact=True)
    elif kind == "pick":
        index = w.array("targets labels", w.index(), (n,), f"integers:{m}")
        y = w.make(f"{x}[jnp.arange({n}), {index}]", x, shape=(n,), is_exact=True)
    elif kind == "mask":
        mask = w.array("mask keep", "bool", (n, m))
        fill = w.pick(("0.0", "-9.0", "1.0"))
        y = w.make(f"jnp.where({mask}, {x}, {fill})", x, low=min(x.low, -9), high=max(x.high, 1))
    elif kind == "diagonal":
        y = w.make(
            f"jnp.diagonal({x}) * 2.0", x, shape=(min(n, m),), low=2 * x.low, high=2 * x.high
        )
    else:
        raw = w.array("weights gates", dtype, (n, m))
        mask = w.let("chosen", compare(w, raw))
        y = w.make(f"jnp.where({mask}, {x}, 0.5 * {raw})", x, raw)
    leave(w, w.let("chosen_values selected", y), [], 4)


@template("integer indices", "indexing")
def arithmetic_indices(w: Writer) -> None:
    """Write indices computed from other indices: strides, neighbours and hashes."""
    dtype = w.floating()
    n = w.size(4, 32)
    x = w.array("grid field values", dtype, (n, *w.shape(0, 1, 6)))
    source = w.let("source", prepare(w, x, 1))
    steps = [w.pick((1, 2, 3)) for _ in range(w.between(1, 3))]
    index = w.let("index", Value(f"jnp.arange({n})", "int64", (n,), 0, n))
    parts = []
    for number, offset in enumerate(steps):
        text = w.pick(
            (
                f"({index} + {offset}) % {n}",
                f"({index} - {offset}) % {n}",
                f"jnp.minimum({index} + {offset}, {n - 1})",
                f"jnp.maximum({index} - {offset}, 0)",
                f"({index} * {offset}) % {n}",
            )
        )
        place = w.let("right_index left_index near_index", Value(text, "int64", (n,), 0, n))
        value = w.make(f"{source}[{place}]", source, is_exact=True)
        parts.append(w.let("right_part left_part near_part", value))
        del number
    y = source
    for part in parts:
        y = w.let("stencil combined flux", binary(w, y, part))
    w.words += [w.pick(("stencil", "neighbors", "finite_difference")), f"{len(steps)}_points"]
    w.title = f"Combine each element with {len(steps)} others by computed indices"
    leave(w, y, [], 4)
