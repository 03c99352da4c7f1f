"""Templates of parameters in containers, and of optimizers."""

from __future__ import annotations

import itertools

from jaxsight.dataset.generating.elementwise import UNARY, apply, binary, chain
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, reduced
from jaxsight.dataset.generating.templates.gradients import smooth_tree
from jaxsight.dataset.generating.types import FLOATS, Value
from jaxsight.dataset.generating.writer import Writer
from jaxsight.dataset.program import Argument, Array

SMOOTH = [each for each in UNARY if not each.is_step and "stop" not in each.text]


def container(
    w: Writer, names: str, parts: dict[str, tuple[int, ...]], dtype: str
) -> tuple[str, dict[str, Value]]:
    """Add a dictionary of arrays to the parameters; return its name and its items."""
    name = w.name(names)
    w.parameters[name] = {part: Array(dtype, shape) for part, shape in parts.items()}
    return name, {
        part: Value(f'{name}["{part}"]', dtype, shape, -4.5, 4.5, True, True)
        for part, shape in parts.items()
    }


@template("dictionary of parameters", "pytrees", 3)
def dictionary(w: Writer) -> None:
    """Write a model whose parameters are a dictionary, perhaps of dictionaries."""
    dtype = w.floating()
    batch, widths = w.size(2, 8), [w.size(2, 12) for _ in range(w.between(2, 4))]
    params = w.name("params weights")
    layers: dict[str, Argument] = {}
    form = w.pick(("nested", "list", "flat", "tuple"))
    pairs = list(itertools.pairwise(widths))
    shapes = [{"w": (one, other), "b": (other,)} for one, other in pairs]
    arrays: list[dict[str, Argument]] = [
        {part: Array(dtype, shape) for part, shape in each.items()} for each in shapes
    ]
    if form == "nested":
        layers = {f"layer{k}": each for k, each in enumerate(arrays)}
        w.parameters[params] = layers
    elif form == "list":
        w.parameters[params] = list(arrays)
    elif form == "flat":
        w.parameters[params] = {
            f"{part}{k}": item for k, each in enumerate(arrays) for part, item in each.items()
        }
    else:
        w.parameters[params] = [(each["w"], each["b"]) for each in arrays]
    x = w.array("x inputs batch", dtype, (batch, widths[0]))
    y = x
    for k, (one, other) in enumerate(pairs):
        path = {
            "nested": (f'{params}["layer{k}"]["w"]', f'{params}["layer{k}"]["b"]'),
            "list": (f'{params}[{k}]["w"]', f'{params}[{k}]["b"]'),
            "flat": (f'{params}["w{k}"]', f'{params}["b{k}"]'),
            "tuple": (f"{params}[{k}][0]", f"{params}[{k}][1]"),
        }[form]
        if form == "tuple":
            w.line(f"kernel{k}, bias{k} = {params}[{k}]")
            path = (f"kernel{k}", f"bias{k}")
        bound = 2 * one**0.5 * max(1.0, y.bound / 2)
        text = f"{y} @ {path[0]} + {path[1]}"
        y = w.let(
            "hidden outputs", w.make(text, y, x, shape=(batch, other), low=-bound, high=bound)
        )
        if k < len(pairs) - 1 or w.chance(0.3):
            y = w.let("activated", calm(w, chain(w, calm(w, y, 12), w.between(1, 2))))
    w.words += [form, "layers", w.pick(("forward", "model", "apply"))]
    w.title = f"Apply {len(pairs)} dense layers whose parameters are a {form} tree"
    w.title = (
        w.title.replace("a nested tree", "nested dictionaries")
        .replace("a list tree", "a list of dictionaries")
        .replace("a flat tree", "a dictionary")
        .replace("a tuple tree", "a list of tuples")
    )
    leave(w, y, [x] if y.shape == x.shape else [], 3)


@template("tree map", "pytrees", 3)
def tree_map(w: Writer) -> None:
    """Write functions mapped over trees of arrays."""
    dtype = w.floating()
    names = w.pick(("w b", "scale shift gain", "q k v", "mean std", "left right center"))
    parts = {name: w.shape(0, 2, 12) for name in names.split()}
    one, _ = container(w, "params tree state", parts, dtype)
    other = container(w, "updates grads deltas", parts, dtype)[0] if w.chance(0.6) else None
    w.words += ["tree", w.pick(("update", "map", "combine", "blend"))]
    w.transformations.discard("")
    a = Value("a", dtype, (2,), -4.5, 4.5, True)
    b = Value("b", dtype, (2,), -4.5, 4.5, True)
    names_ = f"a{', b' if other else ''}"
    pick = w.between(0, 2)
    if pick == 0:
        with w.nested(f"combine({names_})"):
            value = calm(w, smooth_tree(w, [a, b] if other else [a], w.between(1, 3)))
            text = f"{value} + 0.5 * a" + (" - 0.1 * b" if other else "")
            w.line(f"return {w.hoisted(text)}")
        function = "combine"
    else:
        each = w.pick(SMOOTH)
        w.names |= {"a", "b"}
        if each.is_wide or each.low > -1e9 or each.high < 1e9:
            each = SMOOTH[0]
        inner = apply(w, each, a).text
        function = f"lambda {names_}: {inner}" + (
            f" {w.pick('+-')} 0.1 * b" if other else " + 0.5 * a"
        )
    arguments = ", ".join([one, *([other] if other else [])])
    w.line(f"mapped = jax.tree.map({function}, {arguments})")
    finish_tree(w, "mapped", one, parts, dtype)
    w.title = f"Map a function over the leaves of {'two trees' if other else 'a tree'}"


def finish_tree(
    w: Writer, name: str, source: str, parts: dict[str, tuple[int, ...]], dtype: str
) -> None:
    """Write the end of a function that has computed a tree like one of its arguments."""
    kind = w.pick(("tree", "sum", "norm", "items", "flatten"))
    values = [
        Value(f'{name}["{part}"]', dtype, shape, -20, 20, True) for part, shape in parts.items()
    ]
    w.words.append(kind)
    if kind == "tree":
        w.give(*values, text=name)
        return
    if kind == "sum":
        w.line(f"leaves = [jnp.sum(jnp.tanh(leaf)) for leaf in jax.tree.leaves({name})]")
        y = Value("sum(leaves)", dtype, (), -90, 90, True)
    elif kind == "norm":
        text = f"jax.tree.map(lambda leaf: jnp.mean(leaf**2), {name})"
        w.line(f"squares = {text}")
        y = Value("jnp.sqrt(sum(jax.tree.leaves(squares)) + 1e-3)", dtype, (), 0, 30, True)
    elif kind == "items":
        y = w.make(f"jnp.tanh({values[0]})", values[0], low=-1, high=1)
        y = reduced(w, w.let("first", y), None)[0] if y.rank else y
        for value in values[1:]:
            y = w.let("total", w.make(f"{y} + jnp.mean({value})", y, low=-90, high=90))
    else:
        w.line(f"leaves, _ = jax.tree.flatten({name})")
        total = sum(max(1, value.size) for value in values)
        w.line("flat = jnp.concatenate([leaf.ravel() for leaf in leaves])")
        y = Value("flat / 8.0", dtype, (total,), -3, 3, True)
    del source
    leave(w, w.let("result", y), [], 3)


@template("optimizer", "pytrees", 4)
def optimizer(w: Writer) -> None:
    """Write an update of parameters by an optimizer with its state."""
    dtype = w.dtype("float32", "float32", "float64", "bfloat16")
    names = w.pick(("w b", "kernel bias scale", "embed head", "q k v")).split()
    parts = {name: w.shape(0, 2, 12) for name in names}
    params, _ = container(w, "params weights", parts, dtype)
    grads, _ = container(w, "grads gradients", parts, dtype)
    kind = w.pick(("sgd", "momentum", "nesterov", "adam", "rmsprop", "adagrad", "lion", "clipped"))
    rate = w.pick((0.1, 0.01, 0.001, 0.05, 0.3))
    decay = w.pick((0.9, 0.95, 0.99, 0.8))
    w.words += [kind, "update", w.pick(("step", "params", "tree"))]
    w.title = f"Update parameters with {kind}"
    state = None
    if kind not in ("sgd", "clipped"):
        state, _ = container(w, "velocity moments momentum", parts, dtype)
    if w.chance(0.4) or kind == "clipped":
        limit = w.pick((0.5, 1.0, 2.0))
        w.line(f"squares = [jnp.sum(g**2) for g in jax.tree.leaves({grads})]")
        w.line("norm = jnp.sqrt(sum(squares) + 1e-6)")
        w.line(f"factor = {limit} / jnp.maximum(norm, {limit})")
        w.line(f"{grads} = jax.tree.map(lambda g: g * factor, {grads})")
    if w.chance(0.3):
        weight = w.pick((0.01, 0.001, 0.1))
        w.line(f"{grads} = jax.tree.map(lambda g, p: g + {weight} * p, {grads}, {params})")
    body = {
        "sgd": [],
        "clipped": [],
        "momentum": [("velocity", f"{decay} * v + g"), ("", "v")],
        "nesterov": [("velocity", f"{decay} * v + g"), ("", f"g + {decay} * v")],
        "adam": [
            ("second", f"{decay} * jnp.abs(v) + {round(1 - decay, 2)} * g**2"),
            ("", "g / (jnp.sqrt(v) + 0.1)"),
        ],
        "rmsprop": [
            ("average", f"{decay} * v**2 + {round(1 - decay, 2)} * g**2"),
            ("", "g * lax.rsqrt(v + 0.1)"),
        ],
        "adagrad": [("sums", "v**2 + g**2"), ("", "g / jnp.sqrt(v + 0.1)")],
        "lion": [("slow", f"{decay} * v + {round(1 - decay, 2)} * g"), ("", "jnp.tanh(4.0 * v)")],
    }[kind]
    smooth = Value("", dtype, (), -9, 9, True)
    if not body:
        w.line(f"new_params = jax.tree.map(lambda p, g: p - {rate} * g, {params}, {grads})")
        w.give(*[smooth], text="new_params")
        return
    label, rule = body[0]
    w.line(f"new_{label} = jax.tree.map(lambda v, g: {rule}, {state}, {grads})")
    w.line(f"steps = jax.tree.map(lambda v, g: {body[1][1]}, new_{label}, {grads})")
    w.line(f"new_params = jax.tree.map(lambda p, s: p - {rate} * s, {params}, steps)")
    w.give(smooth, text=f"new_params, new_{label}")


@template("named tuple", "pytrees", 3)
def named_tuple(w: Writer) -> None:
    """Write a state as a named tuple or a registered dataclass, made inside the function."""
    dtype = w.floating()
    shape = w.shape(0, 2, 12)
    kind = w.pick(("NamedTuple", "dataclass"))
    fields_ = w.pick(("position velocity", "mean spread", "level trend", "value slope")).split()
    name = w.pick(("State", "Params", "Belief", "Particle"))
    _write_class(w, kind, name, fields_)
    values = [w.array(part, dtype, shape) for part in fields_]
    drive = w.array("force drive input", dtype, shape) if w.chance(0.6) else None
    step = w.pick(("advance", "predict", "relax"))
    head = f"{step}(state{', drive' if drive else ''})"
    with w.helper(head, doc=f"Return the next {name.lower()}."):
        one = Value(f"state.{fields_[0]}", dtype, shape, -4.5, 4.5, True)
        other = Value(f"state.{fields_[1]}", dtype, shape, -4.5, 4.5, True)
        inputs = [one, other, *([Value("drive", dtype, shape, -4.5, 4.5, True)] if drive else [])]
        first = w.short(calm(w, smooth_tree(w, inputs, w.between(1, 2))), "change", 30)
        second = w.short(calm(w, smooth_tree(w, inputs, w.between(1, 2))), "drift", 30)
        extra = " + 0.1 * drive" if drive else ""
        rate = w.pick((0.1, 0.2, 0.05))
        w.line(f"new_{fields_[0]} = {one} + {rate} * jnp.tanh({first}) + {rate} * {other}")
        w.line(f"new_{fields_[1]} = 0.9 * {other} + {rate} * jnp.tanh({second}){extra}")
        w.line(f"return {name}(new_{fields_[0]}, new_{fields_[1]})")
    w.line(f"state = {name}({values[0]}, {values[1]})")
    call = f"{step}(state{f', {drive}' if drive else ''})"
    times = w.between(1, 4)
    loop = w.pick(("fori", "python", "scan", "once"))
    if loop == "fori":
        text = f"lambda _, state: {call}"
        w.line(f"state = lax.fori_loop(0, {times + 1}, {text}, state)")
    elif loop == "python":
        with w.branch(f"for _ in range({times})"):
            w.line(f"state = {call}")
    elif loop == "scan":
        text = f"lambda state, _: ({call}, state.{fields_[0]})"
        w.line(f"state, path = lax.scan({text}, state, None, length={times + 1})")
    else:
        w.line(f"state = {call}")
    results = [w.make(f"state.{part}", *values, low=-9, high=9) for part in fields_]
    w.words += [step, name.lower(), loop]
    w.title = f"Advance a {name.lower()} of {fields_[0]} and {fields_[1]}"
    if loop == "scan":
        w.give(results[1], w.make("path", *values))
        return
    if w.chance(0.3):
        w.give(
            *results,
            text=w.pick(("state", f"(state.{fields_[0]}, state.{fields_[1]})"))
            if kind == "NamedTuple"
            else f"state.{fields_[0]}, state.{fields_[1]}",
        )
        w.lines[-1] = w.lines[-1].replace("return (state", "return state").replace("),", ",")
        if w.lines[-1].endswith(f"{fields_[1]})"):
            w.lines[-1] = w.lines[-1][:-1]
        return
    y = w.let("energy_terms mixed", binary(w, results[0], results[1]))
    y = w.let("total", w.make(f"{y} + state.{fields_[1]}", y, low=-90, high=90))
    leave(w, calm(w, y), values, 3)


def _write_class(w: Writer, kind: str, name: str, fields_: list[str]) -> None:
    """Write the class of a state."""
    if kind == "NamedTuple":
        w.imported("from typing import NamedTuple")
        lines = [
            f"class {name}(NamedTuple):",
            f'    """{fields_[0].capitalize()} and {fields_[1]}."""',
            "",
        ]
    else:
        w.imported("from dataclasses import dataclass")
        lines = [
            "@jax.tree_util.register_dataclass",
            "@dataclass",
            f"class {name}:",
            f'    """{fields_[0].capitalize()} and {fields_[1]}."""',
            "",
        ]
    w.block("\n".join([*lines, *(f"    {part}: jax.Array" for part in fields_)]))


@template("tree of types", "pytrees", 2)
def types(w: Writer) -> None:
    """Write a tree whose leaves have several dtypes and shapes."""
    name = w.name("batch record inputs")
    shape = w.shape(1, 2, 12)
    dtype = w.floating()
    other = w.dtype("int32", "int8", "uint8", "bool", "int64", "uint16")
    third = w.dtype(*FLOATS)
    w.parameters[name] = {
        "features": Array(dtype, shape),
        "codes": Array(other, shape, "booleans" if other == "bool" else "integers:9"),
        "weights": (Array(third, shape), Array(third, ())),
    }
    features = Value(f'{name}["features"]', dtype, shape, -4.5, 4.5, True, True)
    codes = f'{name}["codes"]'
    w.line(f'weights, scale = {name}["weights"]')
    x = (
        w.let("features", chain(w, features, w.between(0, 2)))
        if w.chance(0.7)
        else w.let("features", features)
    )
    if x.dtype != "float32" or dtype == "float64":
        target = "float64" if dtype == "float64" else "float32"
        x = w.let("inputs", w.make(f"{x}.astype(jnp.{target})", x, dtype=target))
    text = f"{codes}.astype({x}.dtype)"
    number = w.let("numbers", Value(text, x.dtype, shape, 0, 9))
    y = w.let("mixed", binary(w, calm(w, x), number))
    spelled = f"{y} * weights.astype({y}.dtype) + scale.astype({y}.dtype)"
    z = w.let(
        "weighted", w.make(spelled, y, Value("", third, (), is_smooth=True), low=-90, high=90)
    )
    z = w.let("shifted", w.make(f"{z} + 0.1 * {number} + 0.1 * {x}", z, low=-95, high=95))
    w.words += ["mixed_record", dtype, other]
    w.title = f"Combine {dtype}, {other} and {third} leaves of a tree"
    leave(w, calm(w, z), [], 4)
