"""What a region computes, where JAX has a name for it."""

from __future__ import annotations

import numpy as np

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo import attributes


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
