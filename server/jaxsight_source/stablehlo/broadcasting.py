"""Broadcasts that people do not write: JAX adds them where it lowers an operation on elements.

`2.0 * x` is a broadcast of the number and a product (`multi_broadcast_in_dim` of mlir.py in JAX),
and so is `x + b` with `b` of size one along some axes.
"""

from __future__ import annotations

import numpy as np

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.operations.regions import owner_of

_OPERATIONS = {
    "stablehlo.add",
    "stablehlo.and",
    "stablehlo.atan2",
    "stablehlo.compare",
    "stablehlo.divide",
    "stablehlo.maximum",
    "stablehlo.minimum",
    "stablehlo.multiply",
    "stablehlo.or",
    "stablehlo.power",
    "stablehlo.remainder",
    "stablehlo.shift_left",
    "stablehlo.shift_right_arithmetic",
    "stablehlo.shift_right_logical",
    "stablehlo.subtract",
    "stablehlo.xor",
}
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
