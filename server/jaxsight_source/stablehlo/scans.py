"""Loops that JAX lowers `lax.scan` to.

Such a loop carries constants and the arrays to scan, a counter, the carry, and the stacked results
(`_scan_impl` in loops.py). A scan that is read is lowered again and compared (`lifting`), so that
a loop that only looks like one remains a `while_loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import jax
from jax import lax

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.canonical import captured
from jaxsight_source.stablehlo.evaluation import Array, Evaluation
from jaxsight_source.stablehlo.lifting.matching import LoweredCandidate
from jaxsight_source.stablehlo.operations.control import constants_of_loop
from jaxsight_source.stablehlo.operations.regions import constant_of, is_constant, owner_of


class _ScanLoop:
    """The parts of a loop with a counter; what the loop carries is told by its position.

    `slices` and `stacked` have the elements in the body of the arrays to scan and of the results.
    """

    def __init__(self, anchor: ir.Operation, counter: int, length: int) -> None:
        condition, body = (region.blocks[0] for region in anchor.regions)
        self.body, self.length = body, length
        self.end = [*body.operations][-1].operation.operands
        arguments = [*body.arguments]
        constants = constants_of_loop(condition, body)
        self.positions = _computed_from(arguments[counter], body)
        self.slices: dict[int, ir.Value] = {}
        self.stacked: dict[int, ir.Value] = {}
        self.skipped = {*self.positions}
        """What the body only computes for the counter, and the arrays that it updates."""
        for place, argument in enumerate(arguments):
            users = [use.owner.operation for use in argument.uses]
            if place in constants and len(users) == 2:
                element = next((user for user in users if user.name == "func.call"), None)
                if element is not None and _takes(element, argument, self.positions, 2):
                    self.slices[place] = element.results[0]
            elif place != counter and len(users) == 1:
                update = owner_of(self.end[place])
                if update is not None and _takes(update, argument, self.positions, 3):
                    self.stacked[place] = update.operands[1]
                    self.skipped.add(update.results[0])
        self.skipped.remove(arguments[counter])
        self.constants = [place for place in sorted(constants) if place not in self.slices]
        others = {*constants, counter, *self.stacked}
        self.carried = [place for place in range(len(arguments)) if place not in others]
        outside = dict.fromkeys(captured(anchor))
        self.around = [value for value in outside if not is_constant(value)]
        """Values that the body reads from around the loop."""
        self.numbers = {
            value: found[()] for value in outside if (found := constant_of(value)) is not None
        }
        self.inputs = (*self.constants, *self.slices, *self.carried)

    @property
    def only_indexes(self) -> bool:
        """Whether the counter only says which elements are read and written."""
        indexed = {*self.slices.values(), *(self.end[place] for place in self.stacked)}
        results = ({*use.owner.operation.results} for value in self.positions for use in value.uses)
        return all(not each or each & (indexed | self.positions) for each in results)


def scans(anchor: ir.Operation, evaluation: Evaluation) -> Iterator[LoweredCandidate]:
    """Yield the scans that a loop may be."""
    condition, body = (region.blocks[0] for region in anchor.regions)
    counted = _counter(condition)
    if counted is None:
        return
    counter, length = counted
    start = constant_of(anchor.operands[counter])
    following = [*body.operations][-1].operation.operands[counter]
    if start is None or start.shape or int(start):
        return
    if not _is_next(following, body.arguments[counter]):
        return
    loop = _ScanLoop(anchor, counter, length)
    if not loop.only_indexes:
        return
    values = [*(anchor.operands[place] for place in loop.inputs), *loop.around]
    structs = tuple(attributes.struct(value.type) for value in values)
    for reverse in (False, True):
        yield LoweredCandidate(_scan(loop, evaluation, reverse), structs)


def _scan(
    loop: _ScanLoop, evaluation: Evaluation, reverse: bool
) -> Callable[..., Sequence[jax.Array]]:
    """Return the function of a scan: of constants, arrays to scan, carry, and values around."""
    body = loop.body
    called = {
        attributes.symbol(each.operation.attributes["callee"])
        for each in body.operations
        if each.operation.name == "func.call"
    }
    # JAX before 0.11 lowers the body of a scan to a function of that name.
    bodies = {name for name in called if name.startswith("closed_call")}

    def function(*inputs: Array) -> Sequence[jax.Array]:
        given = dict(zip((*loop.inputs, *loop.around), inputs, strict=True))

        def step(carry: list[Array], elements: list[Array]) -> tuple[list[Array], object]:
            values = loop.numbers | {value: given[value] for value in loop.around}
            values |= dict.fromkeys(loop.skipped)
            values |= dict(zip(loop.slices.values(), elements, strict=True))
            arguments: list[Array] = [None] * len(body.arguments)
            for place in loop.constants:
                arguments[place] = given[place]
            for place, value in zip(loop.carried, carry, strict=True):
                arguments[place] = value
            with evaluation.inlining(bodies):
                results = evaluation.values(body, arguments, values)
            following = [results[loop.end[place]] for place in loop.carried]
            return following, [results[value] for value in loop.stacked.values()]

        def step_of_one(carry: Array, element: Array) -> tuple[Array, object]:
            (following,), stacked = step([carry], [element])
            return following, stacked

        initial = [given[place] for place in loop.carried]
        arrays = [given[place] for place in loop.slices]
        if len(initial) == len(arrays) == 1:  # so that JAX records these names
            found = lax.scan(
                step_of_one, initial[0], arrays[0], length=loop.length, reverse=reverse
            )
        else:
            found = lax.scan(step, initial, arrays, length=loop.length, reverse=reverse)
        return jax.tree.leaves(found)

    return function


def _counter(condition: ir.Block) -> tuple[int, int] | None:
    """Return which value a loop compares with which constant, if it does nothing else."""
    compared = owner_of([*condition.operations][-1].operation.operands[0])
    if compared is None or compared.name != "stablehlo.compare":
        return None
    if attributes.word(compared.attributes["comparison_direction"]) != "LT":
        return None
    arguments, (value, limit) = [*condition.arguments], compared.operands
    length = constant_of(limit)
    if value not in arguments or length is None or length.shape:
        return None
    return arguments.index(value), int(length)


def _is_next(value: ir.Value, argument: ir.Value) -> bool:
    owner = owner_of(value)
    if owner is None or owner.name != "stablehlo.add" or owner.operands[0] != argument:
        return False
    by = constant_of(owner.operands[1])
    return by is not None and not by.shape and int(by) == 1


def _computed_from(counter: ir.Value, body: ir.Block) -> set[ir.Value]:
    """Return the values of a body that are computed from the counter and constants alone."""
    found = {counter}
    for each in body.operations:
        operation = each.operation
        operands = [value for value in operation.operands if not is_constant(value)]
        if operands and found.issuperset(operands) and not operation.regions:
            found.update(operation.results)
    return found


def _takes(
    operation: ir.Operation, array: ir.Value, positions: set[ir.Value], operands: int
) -> bool:
    """Return whether an operation reads or updates an array at a position."""
    return (
        operation.name == "func.call"
        and len(operation.operands) == operands
        and operation.operands[0] == array
        and operation.operands[operands - 1] in positions
        and len(operation.results) == 1
    )
