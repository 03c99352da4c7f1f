"""Templates of `vmap` and of programs over several devices."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import binary, chain, tree
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, normalised, reduced
from jaxsight.dataset.generating.types import INTEGERS, Value, jnp_dtype
from jaxsight.dataset.generating.writer import Writer


def local(name: str, dtype: str, shape: tuple[int, ...]) -> Value:
    """Return a parameter of a function inside the program."""
    return Value(name, dtype, shape, -4.5, 4.5, True, True)


def kernel(w: Writer, values: list[Value]) -> Value:
    """Return a function of parameters of a nested function, which depends on all of them."""
    x = w.short(tree(w, values, w.between(1, 2)), "inner", 40)
    for value in values:
        x = w.short(binary(w, x, value), "mixed", 44) if value.text not in x.text else x
    if x.is_float and x.rank and w.chance(0.4):
        value, names = normalised(w, x)
        x = w.let(names, value)
        x = w.let("squared", w.make(f"jnp.square({x})", x, low=0, high=x.bound**2))
    if x.rank and w.chance(0.5):
        value, names = reduced(w, w.let("inner terms", calm(w, x)), w.pick((None, -1)))
        x = w.let(names, value)
    missing = [value for value in values if not _is_used(w, x.text, value.text)]
    for value in missing:
        if value.is_float and x.is_float:
            text = f"{x.atom} + 0.1 * jnp.mean({value})" if value.rank else f"{x.atom} + {value}"
            x = w.let("shifted", w.make(text, x, value, low=x.low - 5, high=x.high + 5))
    return calm(w, x)


def _is_used(w: Writer, text: str, name: str) -> bool:
    start = max(k for k, line in enumerate(w.lines) if line.lstrip().startswith("def "))
    words = "".join(
        c if c.isalnum() or c == "_" else " " for c in " ".join([*w.lines[start + 1 :], text])
    )
    return name in words.split()


@template("vmap", "vectorization", 4)
def vmap(w: Writer) -> None:
    """Write a function of an example and its vectorised call."""
    dtype = w.floating() if w.chance(0.85) else w.dtype(*INTEGERS)
    batch, inner = w.size(2, 12), w.shape(0, 2, 8)
    count = w.between(1, 3)
    names = w.pick(("row other weights", "x y scale", "query key_row bias")).split()
    name = w.name("score single process kernel_of one_example")
    axes, values, locals_ = [], [], []
    for k in range(count):
        axis: int | None = w.pick((0, 0, len(inner), None)) if k else w.pick((0, 0, len(inner)))
        shape = inner if axis is None else (*inner[:axis], batch, *inner[axis:])
        values.append(w.array(("xs data rows", "ys others", "scales biases")[k], dtype, shape))
        axes.append(axis)
        locals_.append(local(names[k], dtype, inner))
    head = f"{name}({', '.join(each.text for each in locals_)})"
    doc = w.pick(("", "Process one example."))
    with w.helper(head, doc=doc) if w.chance(0.5) else w.nested(head):
        value = kernel(w, locals_) if dtype not in INTEGERS else tree(w, locals_, 2)
        if dtype in INTEGERS:
            for each in locals_:
                value = w.short(
                    w.make(f"{value.atom} + {each}", value, low=-1e9, high=1e9), "mixed"
                )
        w.line(f"return {w.hoisted(value.text)}")
    out = w.pick((0, 0, 0, -1)) if value.rank else 0
    options = []
    if any(axis != 0 for axis in axes):
        spelled = f"({', '.join(map(str, axes))}{',' if len(axes) == 1 else ''})"
        options.append(f"in_axes={spelled}" if len(axes) > 1 else f"in_axes={axes[0]}")
    if out:
        options.append(f"out_axes={out}")
    tail = f", {', '.join(options)}" if options else ""
    w.transformations.add("vmap")
    w.line(f"batched = jax.vmap({name}{tail})")
    shape = (batch, *value.shape) if out == 0 else (*value.shape, batch)
    arguments = ", ".join(each.text for each in values)
    y = w.make(
        f"batched({arguments})",
        *values,
        dtype=value.dtype,
        shape=shape,
        low=value.low,
        high=value.high,
    )
    w.words += ["batched", name, w.pick(("rows", "examples", ""))]
    w.title = f"Vectorise a function over axis {axes[0]} of its arguments"
    leave(w, w.let("scores outputs", y), [], 3)


@template("pairwise", "vectorization", 3)
def pairwise(w: Writer) -> None:
    """Write a function of all pairs of rows, by nested `vmap`."""
    dtype = w.floating()
    n, m, d = w.size(2, 12), w.size(2, 12), w.size(2, 8)
    xs, ys = w.array("xs points", dtype, (n, d)), w.array("ys centers", dtype, (m, d))
    name = w.name("distance similarity kernel_value")
    with w.nested(f"{name}(x, y)"):
        kind = w.pick(("rbf", "dot", "l1", "own", "cosine"))
        if kind == "own":
            value = kernel(w, [local("x", dtype, (d,)), local("y", dtype, (d,))])
            if value.rank:
                value = w.make(f"jnp.mean({value})", value, shape=())
        else:
            text = {
                "rbf": "jnp.exp(-jnp.mean((x - y) ** 2))",
                "dot": f"jnp.dot(x, y) / {float(d)}",
                "l1": "jnp.mean(jnp.abs(x - y))",
                "cosine": "jnp.sum(x * y) / (jnp.sum(x * x) + jnp.sum(y * y) + 1.0)",
            }[kind]
            value = Value(text, dtype, (), -9, 9, True)
        w.line(f"return {w.hoisted(value.text)}")
    w.transformations.add("vmap")
    form = w.pick(("lambda", "axes", "named"))
    if form == "lambda":
        text = f"jax.vmap(lambda x: jax.vmap(lambda y: {name}(x, y))({ys}))({xs})"
    elif form == "axes":
        w.line(f"rows = jax.vmap({name}, in_axes=(None, 0))")
        text = f"jax.vmap(rows, in_axes=(0, None))({xs}, {ys})"
    else:
        w.line(f"columns = jax.vmap({name}, in_axes=(0, None))")
        text = f"jax.vmap(columns, in_axes=(None, 0), out_axes=1)({xs}, {ys})"
    y = w.let("table", w.make(text, xs, ys, shape=(n, m), low=value.low, high=value.high))
    w.words += ["pairwise", name, kind]
    w.title = f"Compute {name.replace('_', ' ')}s of all pairs of rows"
    leave(w, calm(w, y), [], 4)


@template("named axes", "vectorization", 2)
def named(w: Writer) -> None:
    """Write `vmap` with a named axis and collectives over it."""
    dtype = w.wide()
    batch, inner = w.size(2, 8), w.shape(0, 2, 8)
    xs = w.array("xs examples shards", dtype, (batch, *inner))
    name = w.name("normalize_example center reweigh")
    with w.nested(f"{name}(x)"):
        value = w.short(calm(w, tree(w, [local("x", dtype, inner)], w.between(1, 2))), "inner", 30)
        value = w.let("mapped", w.make(f"{value.atom} + 0.5 * x", value))
        kind = w.pick(("psum", "pmean", "pmax", "pmin", "all_gather", "axis_index"))
        if kind == "all_gather":
            text = f'jnp.mean(lax.all_gather({value}, "batch"), axis=0)'
        elif kind == "axis_index":
            text = f'lax.axis_index("batch").astype({jnp_dtype(dtype)})'
        else:
            text = f'lax.{kind}({value}, "batch")'
            w.is_blocked |= kind in ("pmax", "pmin")
        shared = Value(text, dtype, () if kind == "axis_index" else inner, -9, 9, True)
        shared = w.let("shared", shared)
        result = w.make(f"{value} - 0.5 * {shared}", value, low=-40, high=40)
        w.line(f"return {result}")
    w.transformations.add("vmap")
    text = f'jax.vmap({name}, axis_name="batch")({xs})'
    y = w.let("outputs", w.make(text, xs, low=-40, high=40))
    w.words += [name, kind, w.pick(("over_batch", "examples"))]
    w.title = f"Relate each example to the batch with {kind}"
    leave(w, y, [], 4)


@template("sharded", "vectorization", 3)
def sharded(w: Writer) -> None:
    """Write a function of shards on a mesh of one device, with collectives."""
    dtype = w.wide()
    rows, columns = w.size(2, 8), w.size(2, 8)
    x = w.array("x batch shards", dtype, (rows, columns))
    w.imported("from jax.sharding import AxisType, PartitionSpec")
    w.block('MESH = jax.make_mesh((1,), ("data",), axis_types=(AxisType.Auto,))')
    name = w.name("local_step shard_sum reduce_shards")
    kinds = [
        w.pick(
            (
                "psum",
                "pmax",
                "pmin",
                "all_gather",
                "ppermute",
                "all_to_all",
                "axis_index",
                "psum_scatter",
            )
        )
        for _ in range(w.between(2, 4))
    ]
    with w.nested(f"{name}(shard)"):
        value = w.let("mapped", calm(w, chain(w, local("shard", dtype, x.shape), w.between(1, 3))))
        value = w.let("terms", w.make(f"{value} + 0.1 * shard", value))
        for kind in dict.fromkeys(kinds):
            text = {
                "all_gather": f'lax.all_gather({value}, "data", tiled=True)',
                "ppermute": f'lax.ppermute({value}, "data", [(0, 0)])',
                "all_to_all": f'lax.all_to_all({value}, "data", 0, 0, tiled=True)',
                "axis_index": f'{value} * (1.0 + lax.axis_index("data")).astype({value}.dtype)',
                "psum_scatter": f'lax.psum_scatter({value}, "data", tiled=True)',
            }.get(kind, f'lax.{kind}({value}, "data")')
            if kind in ("pmax", "pmin"):
                w.is_blocked = True
            value = w.let("shared gathered exchanged", w.make(text, value))
            if w.chance(0.5):
                value = w.let("squashed", w.make(f"jnp.tanh({value})", value, low=-1, high=1))
        w.line(f"return {value}")
    w.transformations.add("shard_map")
    w.line('spec = PartitionSpec("data")')
    options = "mesh=MESH, in_specs=spec, out_specs=spec, check_vma=False"
    w.line(f"mapped_step = jax.shard_map({name}, {options})")
    y = w.let("outputs", w.make(f"mapped_step({x})", x, low=-40, high=40))
    w.words += ["sharded", *list(dict.fromkeys(kinds))[:2]]
    w.title = f"Process shards on a mesh with {' and '.join(dict.fromkeys(kinds))}"[:76]
    leave(w, y, [], 3)
