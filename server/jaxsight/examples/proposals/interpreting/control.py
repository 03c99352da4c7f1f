"""What functions that take functions demand of their arguments: `vmap`, `scan`, `cond`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Closure,
    Const,
    Dotted,
    Evidence,
    Items,
    Machine,
    Param,
    Value,
    facts_of,
)
from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape
from jaxsight.examples.proposals.interpreting.uses import LibraryCall, as_array, as_integer


def vmap(call: LibraryCall) -> Value:
    """`vmap(f)`: `f` gets arrays with an axis less, where `in_axes` does not say otherwise."""
    axes = call.get(1, "in_axes", Const(0))
    match call.get(0), axes:
        case Closure() as function, (Const(0) | Items()) if not function.mapped:
            whole = axes.values if isinstance(axes, Items) else ()
            unmapped = (i for i, a in enumerate(whole) if isinstance(a, Const) and a.value is None)
            return replace(function, mapped=1, unmapped=frozenset(unmapped))
        case Closure() as function, Const(0):
            return replace(function, mapped=function.mapped + 1)
    return called(call)


def mapped_call(machine: Machine, function: Closure, arguments: Sequence[Value]) -> Value:
    """Call a function under `vmap`; arrays have at least one more axis than it asks for."""
    inner: list[Value] = []
    pairs: list[tuple[Shape, Shape]] = []
    for i, value in enumerate(arguments):
        shape = as_array(value) if i not in function.unmapped else None
        if shape is None:
            inner.append(value if i in function.unmapped else UNKNOWN)
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
    if root.likely is not None:
        shape.suggest(root.likely + 1)
    for i, dim in root.front.items():
        shape.dim(i + 1).unify(dim)
    for i, dim in root.back.items():
        shape.dim(-i - 1).unify(dim)
    shape.dim(0).unify(batch)


def same(call: LibraryCall) -> Value:
    """`jit(f)`, `grad(f)` and the like: calls demand of their arguments what `f` does."""
    function = call.get(0)
    facts_of(function).called = True
    return function if isinstance(function, Closure | Param) else UNKNOWN


def partial(call: LibraryCall) -> Value:
    match call.arguments:
        case [Closure() as function, *given]:
            return replace(function, bound=(*function.bound, *given))
        case [Dotted("jit" | "jax.jit"), *_]:
            return UNKNOWN
    return UNKNOWN


def scan(call: LibraryCall) -> Value:
    init = call.get(1, "init")
    items = call.get(2, "xs")
    as_integer(call.keywords.get("length", UNKNOWN))
    match call.get(0):
        case Param(evidence):
            evidence.called = True
            for value in (init, items):
                as_array(value)
        case Closure() as function:
            _scanned(call.machine, function, init, items)
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
        for key, facts in inner.keys.items():
            pairs.append((evidence.key(key).shape, facts.shape))
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


def fori_loop(call: LibraryCall) -> Value:
    for value in call.arguments[:2]:
        as_integer(value)
    if len(call.arguments) > 3:
        body, init = call.arguments[2:4]
        same_types(call.machine, init, call.machine.apply(body, [UNKNOWN, init]))
    return call.get(3)


def while_loop(call: LibraryCall) -> Value:
    if len(call.arguments) > 2:
        condition, body, init = call.arguments[:3]
        call.machine.apply(condition, [init])
        same_types(call.machine, init, call.machine.apply(body, [init]))
    return call.get(2)


def cond(call: LibraryCall) -> Value:
    if len(call.arguments) < 3:
        return UNKNOWN
    predicate, *branches = call.arguments[:3]
    facts_of(predicate).boolean = True
    facts_of(predicate).shape.set_rank(0)
    result, _ = (call.machine.apply(branch, call.arguments[3:]) for branch in branches)
    return result


def tree_map(call: LibraryCall) -> Value:
    for value in call.arguments[1:]:
        facts_of(value).tree = True
    return called(call)


def tree_leaves(call: LibraryCall) -> Value:
    facts_of(call.get(0)).tree = True
    return UNKNOWN


def called(call: LibraryCall) -> Value:
    """`jacfwd(f)` and the like: the first argument is a function."""
    facts_of(call.get(0)).called = True
    return UNKNOWN
