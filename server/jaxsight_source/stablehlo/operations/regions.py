"""What a region computes, where JAX has a name for it."""

from __future__ import annotations

import numpy as np

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo import attributes

MONOIDS = {
    "stablehlo.add": "sum", "stablehlo.multiply": "prod", "stablehlo.maximum": "max",
    "stablehlo.minimum": "min", "stablehlo.and": "and", "stablehlo.or": "or",
    "stablehlo.xor": "xor",
}  # fmt: skip
"""How the names of JAX's reductions over axes, windows and devices end."""


def single_operation(block: ir.Block) -> str:
    """Return the operation that a block applies to its arguments; empty if that is not all."""
    operations = [each.operation for each in block.operations]
    if len(operations) != 2:
        return ""
    operation, end = operations
    applied = [*operation.operands] == [*block.arguments]
    returned = [*end.operands] == [*operation.results]
    return operation.name if applied and returned else ""


def constant_of(value: ir.Value) -> np.ndarray | None:
    """Return the constant that a value is."""
    operation = owner_of(value)
    return attributes.constant(operation) if operation is not None and is_constant(value) else None


def is_constant(value: ir.Value) -> bool:
    operation = owner_of(value)
    return operation is not None and operation.name == "stablehlo.constant"


def owner_of(value: ir.Value) -> ir.Operation | None:
    """Return the operation that has a value as result; None for a block's arguments."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else getattr(owner, "operation", owner)


_OPERATIONS = {f"stablehlo.{name}" for name in (
    "add", "and", "atan2", "compare", "divide", "maximum", "minimum", "multiply", "or", "power",
    "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor",
)}  # fmt: skip
"""Operations of two operands that JAX lowers with such broadcasts."""


def unbroadcast(operation: ir.Operation) -> list[ir.Value]:
    """Return the operands of an operation as they are before broadcasts that only it uses.

    What is broadcast then has the shape of the result.
    """
    operands = [*operation.operands]
    if operation.name not in _OPERATIONS:
        return operands
    before = [_before(operand) for operand in operands]
    shapes = [tuple(attributes.tensor(value.type).shape) for value in before]
    result = tuple(attributes.tensor(operands[0].type).shape)
    return before if np.broadcast_shapes(*shapes) == result else operands


def is_implied(operation: ir.Operation) -> bool:
    """Return whether an operation is a broadcast that JAX adds where its result is used."""
    if operation.name != "stablehlo.broadcast_in_dim":
        return False
    (result,) = operation.results
    users = [use.owner.operation for use in result.uses]
    return len(users) == 1 and result not in unbroadcast(users[0])


def _before(value: ir.Value) -> ir.Value:
    """Return what a value is broadcast from, if it is a scalar or has as many axes."""
    owner = owner_of(value)
    if owner is None or owner.name != "stablehlo.broadcast_in_dim" or len([*value.uses]) != 1:
        return value
    source = owner.operands[0]
    shape = tuple(attributes.tensor(source.type).shape)
    axes = attributes.integers(owner.attributes["broadcast_dimensions"])
    rank = len(attributes.tensor(value.type).shape)
    return source if not shape or axes == (*range(rank),) else value
