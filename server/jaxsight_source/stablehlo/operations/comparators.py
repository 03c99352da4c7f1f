"""The order that the comparator of a sort describes, as keys for `lax.sort`.

`lax.sort` compares its first operands in ascending order, and so does the comparator that JAX
lowers it to. Others sort in descending order, by functions of their elements, or compare floats as
integers, into which XLA's pass `comparison-expander` turns them: their keys are computed first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo.evaluation import Array, OperationStep
from jaxsight_source.stablehlo.operations.regions import constant_of, owner_of
from jaxsight_source.stablehlo.program import UnreadableProgram

_DIRECTION = re.compile(r"comparison_direction (\w+)")


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key of a sort.

    Attributes:
        operand: the position of the operand whose elements are compared.
        value: what is compared of an element, inside of the comparator.
        descending: whether the largest come first.
        is_total: whether floats are compared in the total order of zeros and NaN.
    """

    operand: int
    value: ir.Value
    descending: bool
    is_total: bool

    @property
    def is_canonical(self) -> bool:
        """Whether it compares floats as `lax.sort` does: zeros are equal, and NaN come last."""
        return self.is_total and _is_canonical(self.value)

    @property
    def is_plain(self) -> bool:
        """Whether `lax.sort` of the operand has the key's order."""
        is_element = _argument(self.value) is not None
        return not self.descending and (self.is_canonical or (is_element and not self.is_total))

    def array(self, step: OperationStep) -> Array:
        """Return an array whose ascending order is the key's."""
        operand = step.operands[self.operand]
        if self.is_plain:
            return operand
        found = _mapped(step, self.value, operand)
        if jnp.issubdtype(found.dtype, jnp.floating):
            if not self.is_total:
                return -found if self.descending else found
            found = _as_integers(found)
        return ~found if self.descending else found


def keys_of(block: ir.Block) -> list[SortKey]:
    """Return the keys of a comparator, the most significant first.

    Raises:
        UnreadableProgram: it is not known to be an order of keys.
    """
    (*_, last) = (each.operation for each in block.operations)
    return list(_keys(last.operands[0]))


def _keys(root: ir.Value) -> Iterator[SortKey]:
    operands = _operands(root)
    match _name(root):
        case "stablehlo.compare":
            yield _key(root)
        case "stablehlo.or":
            less, both = operands
            if _name(less) != "stablehlo.compare":
                less, both = both, less
            if _name(both) != "stablehlo.and":
                raise _unknown()
            equal, rest = _operands(both)
            if not _is_equality(equal, less, "EQ"):
                equal, rest = rest, equal
            yield from _then(equal, less, rest, "EQ")
        case "stablehlo.select":
            condition, yes, no = operands
            if _is_equality(condition, yes, "NE"):
                yield from _then(condition, yes, no, "NE")
            else:
                yield from _then(condition, no, yes, "EQ")
        case _:
            raise _unknown()


def _then(equal: ir.Value, less: ir.Value, rest: ir.Value, direction: str) -> Iterator[SortKey]:
    """Yield the key of a comparison, and those that decide where it finds elements equal."""
    if not _is_equality(equal, less, direction):
        raise _unknown()
    yield _key(less)
    yield from _keys(rest)


def _is_equality(equal: ir.Value, less: ir.Value, direction: str) -> bool:
    """Return whether a value compares the operands of another comparison for equality."""
    one, other = owner_of(equal), owner_of(less)
    if not one or not other or {one.name, other.name} != {"stablehlo.compare"}:
        return False
    return _direction(one) == direction and [*one.operands] == [*other.operands]


def _key(compared: ir.Value) -> SortKey:
    """Return the key of a comparison of both elements."""
    operation = owner_of(compared)
    direction = _direction(operation) if _name(compared) == "stablehlo.compare" else ""
    if operation is None or direction not in ("LT", "GT"):
        raise _unknown()
    descending = direction == "GT"
    left, right = operation.operands
    pairs: set[tuple[int, int]] = set()
    if not _alike(left, right, pairs) or len(pairs) != 1:
        raise _unknown()
    ((one, other),) = pairs
    if one == other + 1:
        left, descending, one, other = right, not descending, other, one
    if other != one + 1 or one % 2:
        raise _unknown()
    is_total = "TOTALORDER" in _attributes(operation).get("compare_type", "")
    if (expanded := _expanded(left)) is not None and _is_canonical(expanded):
        left, is_total = expanded, True
    return SortKey(one // 2, left, descending, is_total)


def _alike(one: ir.Value, other: ir.Value, pairs: set[tuple[int, int]]) -> bool:
    """Return whether two values are the same function of the arguments in `pairs`, which grow."""
    places = _argument(one), _argument(other)
    if places[0] is not None and places[1] is not None:
        pairs.add((places[0], places[1]))
        return True
    left, right = owner_of(one), owner_of(other)
    if left is None or right is None or left.name != right.name:
        return False
    rows = _rows(left)
    if rows is None or rows != _rows(right):
        return False
    if _attributes(left) != _attributes(right) or one.type != other.type:
        return False
    operands = zip(left.operands, right.operands, strict=True)
    return all(_alike(*both, pairs) for both in operands)


def _rows(operation: ir.Operation) -> list[object] | None:
    """Return what an operation's regions compute; None if they read values from outside."""
    rows: list[object] = []
    for block in (block for region in operation.regions for block in region.blocks):
        numbers = {argument: number for number, argument in enumerate(block.arguments)}
        for each in (one.operation for one in block.operations):
            if len(each.regions) or any(operand not in numbers for operand in each.operands):
                return None
            operands = [numbers[operand] for operand in each.operands]
            rows.append((each.name, _attributes(each), operands))
            numbers.update({result: len(numbers) + at for at, result in enumerate(each.results)})
    return rows


def _is_canonical(value: ir.Value) -> bool:
    """Return whether a value is an element with one zero and one NaN, as JAX writes that."""
    match _select(value):
        case [condition, nan, inner]:
            pass
        case _:
            return False
    match _select(inner):
        case [is_zero, zero, element]:
            pass
        case _:
            return False
    return (
        _argument(element) is not None
        and _compares(condition, "NE", element, element)
        and _is_constant(nan, np.isnan)
        and _compares_with_zero(is_zero, "EQ", element)
        and _is_constant(zero, lambda number: number == 0)
    )


def _expanded(value: ir.Value) -> ir.Value | None:
    """Return the float whose total order XLA wrote with integers, if a value is that."""
    match _select(value):
        case [condition, flipped, bits] if _name(bits) == "stablehlo.bitcast_convert":
            pass
        case _:
            return None
    xor = owner_of(flipped)
    if xor is None or xor.name != "stablehlo.xor" or bits not in [*xor.operands]:
        return None
    largest = next((each for each in xor.operands if each != bits), bits)
    is_largest = _is_constant(largest, lambda number: number == np.iinfo(number.dtype).max)
    if not is_largest or not _compares_with_zero(condition, "LT", bits):
        return None
    (found,) = _operands(bits)
    return found


def _mapped(step: OperationStep, value: ir.Value, operand: Array) -> Array:
    """Return what a value of the comparator is for each element of an operand."""
    block = step.block(0)
    needed: set[ir.Value] = set()
    pending = [value]
    while pending:
        each = pending.pop()
        needed.add(each)
        if (operation := owner_of(each)) is not None:
            pending += operation.operands

    def scalar(element: Array) -> Array:
        values = {**step.values, **dict.fromkeys(block.arguments, element)}
        for each in block.operations:
            operation = each.operation
            if not any(result in needed for result in operation.results):
                continue
            operands = tuple(values[one] for one in operation.operands)
            inner = OperationStep(operation, operands, values, step.evaluation)
            values.update(zip(operation.results, step.evaluation.evaluated(inner), strict=True))
        return values[value]

    for _ in operand.shape:
        scalar = jax.vmap(scalar)
    return scalar(operand)


def _as_integers(numbers: Array) -> Array:
    """Return integers in the total order of floats."""
    kind = jnp.dtype(f"int{8 * numbers.dtype.itemsize}")
    bits = lax.bitcast_convert_type(numbers, kind)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(kind).max, bits)


def _compares(value: ir.Value, direction: str, left: ir.Value, right: ir.Value) -> bool:
    operation = owner_of(value)
    if operation is None or operation.name != "stablehlo.compare":
        return False
    return _direction(operation) == direction and [*operation.operands] == [left, right]


def _compares_with_zero(value: ir.Value, direction: str, left: ir.Value) -> bool:
    operands = _operands(value)
    if len(operands) != 2 or not _is_constant(operands[1], lambda number: number == 0):
        return False
    return _compares(value, direction, left, operands[1])


def _operands(value: ir.Value) -> list[ir.Value]:
    operation = owner_of(value)
    return [] if operation is None else [*operation.operands]


def _select(value: ir.Value) -> list[ir.Value]:
    return _operands(value) if _name(value) == "stablehlo.select" else []


def _name(value: ir.Value) -> str:
    operation = owner_of(value)
    return operation.name if operation else ""


def _argument(value: ir.Value) -> int | None:
    """Return the position of a block's argument."""
    if not isinstance(value.owner, ir.Block):
        return None
    return int(ir.BlockArgument(value).arg_number)


def _is_constant(value: ir.Value, test: Callable[[np.ndarray], object]) -> bool:
    found = constant_of(value)
    return found is not None and found.ndim == 0 and bool(test(found))


def _direction(operation: ir.Operation) -> str:
    found = _DIRECTION.search(str(operation.attributes["comparison_direction"]))
    return found[1] if found else ""


def _attributes(operation: ir.Operation) -> dict[str, str]:
    found = [operation.attributes[position] for position in range(len(operation.attributes))]
    return {each.name: str(each.attr) for each in found}


def _unknown() -> UnreadableProgram:
    return UnreadableProgram("expected a comparator that orders by keys")
