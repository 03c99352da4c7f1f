"""Calls, branches and loops."""

from __future__ import annotations

from collections.abc import Iterator

from jax import lax

from jaxsight.sourcerizer.stablehlo.compat import ir
from jaxsight.sourcerizer.stablehlo.evaluation import ABSORBED, Array, OperationStep, Results, reads
from jaxsight.sourcerizer.stablehlo.operations.regions import constant_of, owner_of


def symbol(attribute: ir.Attribute) -> str:
    return str(ir.FlatSymbolRefAttr(attribute).value)


@reads("func.call")
def call(step: OperationStep) -> Results:
    return step.evaluation.jitted(symbol(step.attribute("callee")))(*step.operands)


@reads("stablehlo.if")
def if_(step: OperationStep) -> Results:
    return lax.cond(step.operand, step.region(0), step.region(1))


def _index(operation: ir.Operation, branches: int) -> str:
    """Return how JAX computes the index of a `case`: `switch` clamps it, `cond` converts it."""
    if operation.name == "stablehlo.clamp":
        low, _, high = map(constant_of, operation.operands)
        if low is None or high is None:
            return ""
        return "switch" if low == 0 and high == branches - 1 else ""
    if operation.name == "stablehlo.convert" and branches == 2:
        return "cond" if str(operation.operands[0].type) == "tensor<i1>" else ""
    return ""


def _is_index(operation: ir.Operation) -> bool:
    """Return whether an operation only computes the index of a `case`."""
    if operation.name not in ("stablehlo.clamp", "stablehlo.convert"):
        return False
    users = [use.owner.operation for use in operation.results[0].uses]
    return (
        len(users) == 1
        and users[0].name == "stablehlo.case"
        and bool(_index(operation, len(users[0].regions)))
    )


ABSORBED.append(_is_index)


@reads("stablehlo.case")
def case(step: OperationStep) -> Results:
    branches = [step.region(position) for position in range(len(step.operation.regions))]
    owner = owner_of(step.operation.operands[0])
    index = _index(owner, len(branches)) if owner is not None else ""
    if owner is None or not index:
        return lax.switch(step.operand, branches)
    if index == "cond":
        return lax.cond(step.values[owner.operands[0]], branches[1], branches[0])
    return lax.switch(step.values[owner.operands[1]], branches)


@reads("stablehlo.while")
def while_(step: OperationStep) -> Results:
    """Return a loop; values that it carries unchanged, and that come first, are read from around.

    JAX lowers the constants of a loop to such values (`_while_lowering`).
    """
    condition, body = step.block(0), step.block(1)
    end = [*body.operations][-1].operation
    kept = 0
    for argument, returned in zip(body.arguments, end.operands, strict=True):
        if argument != returned:
            break
        kept += 1
    while kept and not _reads_in_order(condition, body, kept):
        kept -= 1
    constants = step.operands[:kept]
    run_condition, run_body = step.region(0), step.region(1)
    return [
        *constants,
        *lax.while_loop(
            lambda carry: run_condition(*constants, *carry)[0],
            lambda carry: run_body(*constants, *carry)[kept:],
            step.operands[kept:],
        ),
    ]


def _reads_in_order(condition: ir.Block, body: ir.Block, count: int) -> bool:
    """Return whether a loop reads its first values in the order in which JAX would pass them.

    Those of the condition come before those of the body, each in the order of their first use.
    """
    expected = [*first_uses(condition, count), *first_uses(body, count)]
    return expected == [*range(count)]


def first_uses(block: ir.Block, count: int) -> list[int]:
    """Return which of a block's first arguments it uses, in order of first use."""
    positions = {argument: place for place, argument in enumerate(block.arguments) if place < count}
    found: dict[int, None] = {}
    operations = [each.operation for each in block.operations]
    for operation in operations[:-1]:
        for value in _operands(operation):
            if value in positions:
                found[positions[value]] = None
    rest = operations[-1].operands
    for place, value in enumerate(rest):
        if value in positions and positions[value] != place:
            found[positions[value]] = None
    return list(found)


def _operands(operation: ir.Operation) -> Iterator[ir.Value]:
    """Yield the values that an operation and its regions use."""
    yield from operation.operands
    for region in operation.regions:
        for block in region.blocks:
            for each in block.operations:
                yield from _operands(each.operation)


@reads("stablehlo.tuple")
def tuple_(step: OperationStep) -> Results:
    return [step.operands]


@reads("stablehlo.get_tuple_element")
def get_tuple_element(step: OperationStep) -> Array:
    return step.operand[step.integer("index")]
