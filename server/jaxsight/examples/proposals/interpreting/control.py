"""What functions that take functions demand of their arguments: `vmap`, `scan`, `cond`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Closure,
    Const,
    Evidence,
    Items,
    Machine,
    Named,
    Param,
    Value,
)
from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape
from jaxsight.examples.proposals.interpreting.uses import as_array, as_integer


def vmap(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """`vmap(f)`: `f` gets arrays with an axis less, where `in_axes` does not say otherwise."""
    axes = keywords.get("in_axes", arguments[1] if len(arguments) > 1 else Const(0))
    match arguments, axes:
        case [Closure() as function, *_], (Const(0) | Items()) if not function.mapped:
            whole = axes.values if isinstance(axes, Items) else ()
            unmapped = (i for i, a in enumerate(whole) if isinstance(a, Const) and a.value is None)
            return replace(function, mapped=1, unmapped=frozenset(unmapped))
        case [Closure() as function, *_], Const(0):
            return replace(function, mapped=function.mapped + 1)
        case [Closure(), *_], _:
            return UNKNOWN
    match arguments:
        case [Param(evidence), *_]:
            evidence.called = evidence.called or ("x",)
    return UNKNOWN


def mapped_call(machine: Machine, function: Closure, arguments: Sequence[Value]) -> Value:
    """Call a function under `vmap`; arrays have at least one more axis than it asks for."""
    inner: list[Value] = []
    pairs: list[tuple[Shape, Shape]] = []
    for i, value in enumerate(arguments):
        shape = as_array(value) if i not in function.unmapped else None
        if i in function.unmapped:
            inner.append(value)
            continue
        if shape is None:
            inner.append(UNKNOWN)
            continue
        shape.at_least(1)
        dims = shape.dims
        item = Shape.of(dims[1:]) if dims else Shape()
        pairs.append((shape, item))
        inner.append(Arr(item))
    result = machine.apply(replace(function, mapped=function.mapped - 1), inner)
    batch = Dim()
    for shape, item in pairs:
        _lengthen(shape, item, batch)
    return Arr(Shape(), loose=True) if not isinstance(result, Items) else UNKNOWN


def _lengthen(shape: Shape, item: Shape, batch: Dim) -> None:
    """Give an array an axis before those of its items."""
    root = item.find()
    if root.rank is not None:
        shape.set_rank(root.rank + 1)
    shape.at_least(root.least + 1)
    if root.likely is not None and shape.find().likely is None:
        shape.find().likely = root.likely + 1
    for i, dim in root.front.items():
        shape.dim(i + 1).unify(dim)
    for i, dim in root.back.items():
        shape.dim(-i - 1).unify(dim)
    shape.dim(0).unify(batch)


def same(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """`jit(f)`, `grad(f)` and the like: calls demand of their arguments what `f` does."""
    match arguments:
        case [Closure() as function, *_]:
            return function
        case [Param(), *_]:
            return arguments[0]
    return UNKNOWN


def grad(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    if arguments and isinstance(arguments[0], Param):
        arguments[0].evidence.differentiated = True
        return Named("differentiated", arguments[0])
    return same(machine, arguments, keywords)


def differentiable(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    """Call the gradient of the first argument, a parameter; it takes what that takes."""
    if arguments and isinstance(arguments[0], Param):
        machine.apply(arguments[0], arguments[1:], keywords)
    return UNKNOWN


def partial(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    match arguments:
        case [Closure() as function, *given]:
            return replace(function, bound=(*function.bound, *given))
        case [Named("jit" | "jax.jit"), *_]:
            return UNKNOWN
    return UNKNOWN


def scan(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    init = arguments[1] if len(arguments) > 1 else keywords.get("init", UNKNOWN)
    items = arguments[2] if len(arguments) > 2 else keywords.get("xs", UNKNOWN)
    as_integer(keywords.get("length"))
    match arguments[0] if arguments else UNKNOWN:
        case Param(evidence):
            evidence.scanned = True
            evidence.called = ("carry", "x")
            for value in (init, items):
                as_array(value)
        case Closure() as function:
            _scanned(machine, function, init, items)
    return UNKNOWN


def _scanned(machine: Machine, function: Closure, init: Value, items: Value) -> None:
    """Call the body of a scan with an item of what it is scanned over."""
    batch = Dim()

    def item(value: Value) -> Value:
        match value:
            case Items(values):
                return Items(tuple(map(item, values)))
            case Param(evidence):
                inner = Evidence(evidence.name)
                scanned.append((evidence, inner))
                return Param(inner)
            case Arr(shape):
                shape.dim(0).unify(batch)
                dims = shape.dims
                part = Shape.of(dims[1:]) if dims else shape.tied(-1, {}, {})
                pairs.append((shape, part))
                return Arr(part)
        return UNKNOWN

    pairs: list[tuple[Shape, Shape]] = []
    scanned: list[tuple[Evidence, Evidence]] = []
    match machine.apply(function, [init, item(items)]):
        case Items((carry, *_)):
            same_types(machine, init, carry)
    for evidence, inner in scanned:
        for key, shape in inner.keys.items():
            pairs.append((evidence.keys.setdefault(key, Shape()), shape))
        if not inner.keys and not inner.tree:
            evidence.array += 1
            evidence.integer = evidence.integer or inner.integer
            pairs.append((evidence.shape, inner.shape))
    for shape, part in pairs:
        _lengthen(shape, part, batch)


def same_types(machine: Machine, init: Value, carry: Value) -> None:
    """Give what goes into a loop the types of what comes out."""
    match init, carry:
        case Items(values), Items(others) if len(values) == len(others):
            for value, other in zip(values, others, strict=True):
                same_types(machine, value, other)
        case ((Param() | Arr(loose=False)), (Param() | Arr(loose=False))):
            one, two = (
                v.evidence.shape if isinstance(v, Param) else v.shape for v in (init, carry)
            )
            if one.find().rank is None and two.find().rank is None:
                machine.links.append((one, two))
            else:
                one.unify(two)


def fori_loop(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    for value in arguments[:2]:
        as_integer(value)
    if len(arguments) > 3:
        carry = machine.apply(arguments[2], [UNKNOWN, arguments[3]])
        same_types(machine, arguments[3], carry)
    return arguments[3] if len(arguments) > 3 else UNKNOWN


def while_loop(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    if len(arguments) > 2:
        machine.apply(arguments[0], [arguments[2]])
        same_types(machine, arguments[2], machine.apply(arguments[1], [arguments[2]]))
        return arguments[2]
    return UNKNOWN


def cond(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    if len(arguments) < 3:
        return UNKNOWN
    if isinstance(arguments[0], Param):
        arguments[0].evidence.boolean = True
        arguments[0].evidence.shape.set_rank(0)
    results = [machine.apply(function, arguments[3:]) for function in arguments[1:3]]
    return results[0]


def tree_map(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    for value in arguments[1:]:
        if isinstance(value, Param):
            value.evidence.tree = True
    if arguments and isinstance(arguments[0], Param):
        arguments[0].evidence.called = ("x",) * (len(arguments) - 1)
    return UNKNOWN


def tree_leaves(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    for value in arguments[:1]:
        if isinstance(value, Param):
            value.evidence.tree = True
    return UNKNOWN


def differentiated(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    if arguments and isinstance(arguments[0], Param):
        arguments[0].evidence.called = arguments[0].evidence.called or ("x",)
    return UNKNOWN
