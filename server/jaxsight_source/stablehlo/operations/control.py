"""Calls, branches and loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jax import lax

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo.attributes import symbol
from jaxsight_source.stablehlo.canonical import constant_branch
from jaxsight_source.stablehlo.evaluation import ABSORBED, Array, OperationStep, Results, reads
from jaxsight_source.stablehlo.operations.regions import constant_of, owner_of
from jaxsight_source.stablehlo.program import UnreadableProgram


@reads("func.call")
def call(step: OperationStep) -> Results:
    name = symbol(step.attribute("callee"))
    if name in step.evaluation.inlined:
        return step.evaluation.function(name)(*step.operands)
    try:
        return step.evaluation.jitted(name)(*step.operands)
    except RecursionError:
        raise UnreadableProgram(f"@{name} calls itself") from None


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
    if (known := constant_branch(step.operation)) is not None:
        return step.evaluation.block(known.blocks[0], (), step.values)
    branches = [step.region(position) for position in range(len(step.operation.regions))]
    owner = owner_of(step.operation.operands[0])
    index = _index(owner, len(branches)) if owner is not None else ""
    if owner is None or not index:
        last = np.int32(len(branches) - 1)  # which also negative indices take
        negative = lax.lt(step.operand, np.int32(0))
        return lax.switch(lax.select(negative, last, step.operand), branches)
    if index == "cond":
        return lax.cond(step.values[owner.operands[0]], branches[1], branches[0])
    return lax.switch(step.values[owner.operands[1]], branches)


@reads("stablehlo.while")
def while_(step: OperationStep) -> Results:
    """Return a loop; constants that it carries are read from around.

    JAX lowers a loop to one that carries its constants before the rest (`_while_lowering`).
    """
    condition, body = step.block(0), step.block(1)
    constants = constants_of_loop(condition, body)
    changing = [place for place in range(len(step.operands)) if place not in constants]
    run_condition, run_body = step.region(0), step.region(1)

    def whole(carry: Sequence[Array]) -> list[Array]:
        values = list(step.operands)
        for place, value in zip(changing, carry, strict=True):
            values[place] = value
        return values

    def run(carry: Sequence[Array]) -> list[Array]:
        results = run_body(*whole(carry))
        return [results[place] for place in changing]

    initial = [step.operands[place] for place in changing]
    return whole(lax.while_loop(lambda carry: run_condition(*whole(carry))[0], run, initial))


def constants_of_loop(condition: ir.Block, body: ir.Block) -> set[int]:
    """Return which values of a loop are constants that its functions read from around.

    JAX passes those of the condition, then values that the body carries without change, then those
    of the body, both constants in the order of their first use (`while_loop` in loops.py).
    """
    end = [*body.operations][-1].operation
    pairs = list(zip(body.arguments, end.operands, strict=True))
    kept = next((place for place, (old, new) in enumerate(pairs) if old != new), len(pairs))
    in_condition, in_body = first_uses(condition, kept), first_uses(body, kept)
    first = 0
    while in_condition[first : first + 1] == [first] and first not in in_body:
        first += 1
    kept = min([kept, *(place for place in in_condition if place >= first)])
    last = kept
    while last > first and [place for place in in_body if last <= place + 1 <= kept] == [
        *range(last - 1, kept)
    ]:
        last -= 1
    return {*range(first), *range(last, kept)}


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


@reads("stablehlo.create_token", "stablehlo.after_all")
def token(_: OperationStep) -> Results:
    """Return nothing: JAX orders effects as a program has them, so tokens are not written."""
    return [None]


@reads("stablehlo.tuple")
def tuple_(step: OperationStep) -> Results:
    return [step.operands]


@reads("stablehlo.get_tuple_element")
def get_tuple_element(step: OperationStep) -> Array:
    return step.operand[step.integer("index")]
