"""Replace what XLA's conversion leaves of HLO's own operations by StableHLO of the same values.

Fusions, asynchronous calls and tuples are ways to run a program, not values: the operations inside
take their place. A bitcast reads an array's memory in another shape, which is a reshape between
transpositions where layouts are not the default ones. A collective of groups of one device returns
its operand. Functions that regions call are inlined there: JAX has no functions inside of those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxsight_source.compat.lowered.mlir import attributes_of, ir

_RENAMED = {
    "mhlo.erf": "chlo.erf",
    "mhlo.erf_inv": "chlo.erf_inv",
    "mhlo.topk": "chlo.top_k",
    "mhlo.ragged_dot": "chlo.ragged_dot",
    **{f"mhlo.{name}": f"chlo.{name}" for name in ("acos", "acosh", "asin", "asinh", "atanh")},
    **{f"mhlo.{name}": f"chlo.{name}" for name in ("cosh", "sinh")},
}
"""Operations that the dialect `chlo` has, with the same operands, results and attributes."""

_IDENTITIES = frozenset({"mhlo.copy", "mhlo.domain", "mhlo.add_dependency"})
"""Operations whose result is their first operand; `copy` may change its layout."""


_COLLECTIVES = frozenset({"stablehlo.all_reduce", "stablehlo.all_gather"}) | {
    "stablehlo.reduce_scatter"
}

_INLINING = frozenset({"stablehlo.sort", "stablehlo.reduce", "stablehlo.reduce_window"}) | {
    f"stablehlo.{name}" for name in ("all_reduce", "map", "scatter", "select_and_scatter")
}
"""Operations of whose regions JAX makes scalar functions."""


class Unflattened(ValueError):
    """An operation has no StableHLO; the message names it."""


def flatten(module: Any) -> None:
    """Replace HLO's own operations in an `ir.Module`, in place.

    Raises:
        Unflattened: an operation has no StableHLO.
    """
    with module.context, ir.Location.unknown():
        _Flattening(module).block(module.body)


class _Flattening:
    def __init__(self, module: Any) -> None:
        self._functions = {
            ir.StringAttr(function.attributes["sym_name"]).value: function.operation
            for function in module.body.operations
            if function.operation.name == "func.func"
        }
        self._depth = 0
        self._tuples: dict[Any, Sequence[Any]] = {}
        self._started: dict[Any, Any] = {}

    def block(self, block: Any) -> None:
        """Replace operations of a block and of all inside, the inner ones first."""
        erased: list[Any] = []
        for operation in list(block.operations):
            operation = operation.operation
            is_scalar = operation.name in _INLINING
            self._depth += is_scalar
            for region in operation.regions:
                for inner in region.blocks:
                    self.block(inner)
            self._depth -= is_scalar
            if replaced := self._replacement(operation):
                replaced(operation)
                erased.append(operation)
        for operation in reversed(erased):
            operation.erase()

    def _replacement(self, operation: Any) -> Callable[[Any], None] | None:
        """Return what replaces an operation, if it is to be replaced."""
        name = operation.name
        if name in _IDENTITIES:
            return self._identity
        if name in _RENAMED:
            return self._renamed
        if name in _OWN:
            own = _OWN[name]
            return lambda each: own(self, each)
        if name in _COLLECTIVES and _is_of_one(operation):
            return self._identity_of_all
        if name == "func.call" and self._depth:
            return self._called
        if name == "stablehlo.custom_call" and _is_tuple(operation):
            return self._tuple_call
        if name.startswith("mhlo.") and name != "mhlo.return":  # of a fusion
            raise Unflattened(f"`{name.removeprefix('mhlo.')}` of HLO has no StableHLO")
        return None

    def _identity(self, operation: Any) -> None:
        operation.results[0].replace_all_uses_with(operation.operands[0])

    def _identity_of_all(self, operation: Any) -> None:
        _replace(operation, list(operation.operands))

    def _called(self, operation: Any) -> None:
        _replace(operation, self._copied(operation, list(operation.operands), operation))

    def _copied(self, call: Any, operands: Sequence[Any], before: Any) -> list[Any]:
        """Copy what a call computes before an operation; return the results."""
        callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        (block,) = self._functions[callee].regions[0].blocks
        values = dict(zip(block.arguments, operands, strict=True))
        *inside, last = (each.operation for each in block.operations)
        for each in inside:
            known = [values[operand] for operand in each.operands]
            if each.name == "func.call":
                values.update(zip(each.results, self._copied(each, known, before), strict=True))
                continue
            if list(each.regions):
                raise Unflattened(f"a function that a scalar function calls has `{each.name}`")
            copy = _made(each.name, _types(each), before, attributes_of(each), known)
            values.update(zip(each.results, copy.results, strict=True))
        return [values[result] for result in last.operands]

    def _renamed(self, operation: Any) -> None:
        attributes = attributes_of(operation)
        if str(attributes.pop("largest", "true")) != "true":
            raise Unflattened("`topk` of the smallest values has no StableHLO")
        made = _made(_RENAMED[operation.name], _types(operation), operation, attributes)
        _replace(operation, list(made.results))

    def _fusion(self, operation: Any) -> None:
        _replace(operation, _inlined(operation))

    def _bitcast(self, operation: Any) -> None:
        (value,), (result,) = operation.operands, operation.results
        attributes = attributes_of(operation)
        source, target = ir.RankedTensorType(value.type), ir.RankedTensorType(result.type)
        # Memory holds the dimensions from the most major to the most minor one.
        order = _major_to_minor(attributes.get("source_layout"), source.rank)
        value = _transposed(value, order, operation)
        order = _major_to_minor(attributes.get("result_layout"), target.rank)
        shape = [target.shape[dimension] for dimension in order]
        for name, element in (
            ("reshape", source.element_type),
            ("bitcast_convert", target.element_type),
        ):
            kind = ir.RankedTensorType.get(shape, element)
            if kind != value.type:
                (value,) = _made(f"stablehlo.{name}", [kind], operation, {}, [value]).results
        inverse = sorted(range(target.rank), key=order.__getitem__)
        _replace(operation, [_transposed(value, inverse, operation)])

    def _tuple(self, operation: Any) -> None:
        self._tuples[operation.results[0]] = list(operation.operands)

    def _element(self, operation: Any) -> None:
        parts = self._tuples.get(operation.operands[0])
        if parts is None:
            raise Unflattened("a tuple that no operation of the program makes has no StableHLO")
        index = ir.IntegerAttr(operation.attributes["index"]).value
        if _is_tuple(operation):
            self._tuples[operation.results[0]] = self._tuples.get(parts[index], [])
        else:
            operation.results[0].replace_all_uses_with(parts[index])

    def _tuple_call(self, operation: Any) -> None:
        kind = ir.TupleType(operation.results[0].type)
        types = [kind.get_type(index) for index in range(kind.num_types)]
        if any(str(each).startswith("tuple<") for each in types):
            raise Unflattened("a call that returns tuples in a tuple has no StableHLO")
        attributes = attributes_of(operation)
        attributes.pop("xla_shape", None)
        # Layouts of the elements are inside of a tuple.
        if layouts := attributes.get("result_layouts"):
            parts = list(ir.ArrayAttr(layouts))
            if len(parts) == 1 and isinstance(parts[0], ir.ArrayAttr):
                attributes["result_layouts"] = parts[0]
        made = _made(operation.name, types, operation, attributes)
        self._tuples[operation.results[0]] = list(made.results)

    def _start(self, operation: Any) -> None:
        self._started[operation.results[0]] = operation

    def _update(self, operation: Any) -> None:
        self._started[operation.results[0]] = self._started[operation.operands[0]]

    def _done(self, operation: Any) -> None:
        started = self._started[operation.operands[0]]
        if started.regions:
            _replace(operation, _inlined(started))
            return
        callee = {"callee": started.attributes["called_computation"]}
        operands = list(started.operands)
        made = _made("func.call", _types(operation), operation, callee, operands)
        _replace(operation, list(made.results))


_OWN: dict[str, Callable[[_Flattening, Any], None]] = {
    "mhlo.fusion": _Flattening._fusion,
    "mhlo.bitcast": _Flattening._bitcast,
    "mhlo.tuple": _Flattening._tuple,
    "stablehlo.tuple": _Flattening._tuple,
    "stablehlo.get_tuple_element": _Flattening._element,
    "mhlo.get_tuple_element": _Flattening._element,
    "mhlo.async_start": _Flattening._start,
    "mhlo.async_update": _Flattening._update,
    "mhlo.async_done": _Flattening._done,
    "stablehlo.async_start": _Flattening._start,
    "stablehlo.async_done": _Flattening._done,
}


def _is_of_one(operation: Any) -> bool:
    """Return whether each group of devices that a collective works in has one device.

    With a channel, groups have all partitions of their replicas, unless they list devices
    (`xla/hlo/ir/collective_op_group_mode.cc`): after SPMD, `{{0}}` stands for all devices.
    """
    attributes = operation.attributes
    groups = attributes["replica_groups"]
    if "channel_handle" in attributes and "use_global_device_ids" not in attributes:
        return False
    if not isinstance(groups, ir.DenseElementsAttr):  # axes of a mesh, which JAX 0.12 lowers to
        return False
    return bool(ir.RankedTensorType(ir.DenseElementsAttr(groups).type).shape[1] == 1)


def _inlined(operation: Any) -> list[Any]:
    """Move what an operation's region computes before it; return the region's results."""
    (block,) = operation.regions[0].blocks
    for argument, operand in zip(block.arguments, operation.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *inside, last = (each.operation for each in block.operations)
    for each in inside:
        each.move_before(operation)
    return list(last.operands)


def _replace(operation: Any, values: Sequence[Any]) -> None:
    for result, value in zip(operation.results, values, strict=True):
        result.replace_all_uses_with(value)


def _made(
    name: str,
    types: Sequence[Any],
    before: Any,
    attributes: dict[str, Any],
    operands: Sequence[Any] | None = None,
) -> Any:
    """Return a new operation that stands before another; its operands by default."""
    return ir.Operation.create(
        name,
        results=list(types),
        operands=list(before.operands) if operands is None else list(operands),
        attributes=attributes,
        loc=before.location,
        ip=ir.InsertionPoint(before),
    )


def _transposed(value: Any, order: Sequence[int], before: Any) -> Any:
    """Return an array with its dimensions in another order."""
    if list(order) == sorted(order):
        return value
    source = ir.RankedTensorType(value.type)
    shape = [source.shape[dimension] for dimension in order]
    kind = ir.RankedTensorType.get(shape, source.element_type)
    attributes = {"permutation": ir.DenseI64ArrayAttr.get(list(order))}
    return _made("stablehlo.transpose", [kind], before, attributes, [value]).results[0]


def _major_to_minor(layout: Any, rank: int) -> list[int]:
    """Return the order of dimensions in memory; a layout lists them from the most minor one."""
    if layout is None:
        return list(range(rank))
    return [int(each) for each in ir.DenseIntElementsAttr(layout)][::-1]


def _types(operation: Any) -> list[Any]:
    return [result.type for result in operation.results]


def _is_tuple(operation: Any) -> bool:
    """Return whether an operation returns a tuple."""
    return [str(each).startswith("tuple<") for each in _types(operation)] == [True]
