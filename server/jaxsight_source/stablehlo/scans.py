"""Loops that JAX lowers `lax.scan` to.

Such a loop carries constants and the arrays to scan, a counter, the carry, and the stacked results
(`_scan_impl` in loops.py). A scan that is read is lowered again and compared (`lifting`), so that
a loop that only looks like one remains a `while_loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jax import lax

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.canonical import captured
from jaxsight_source.stablehlo.evaluation import Array, Evaluation
from jaxsight_source.stablehlo.lifting.matching import LoweredCandidate
from jaxsight_source.stablehlo.operations.control import constants_of_loop
from jaxsight_source.stablehlo.operations.regions import constant_of, is_constant, owner_of


@dataclass(frozen=True, slots=True)
class ScanLoop:
    """The parts of a loop that looks like a scan."""

    anchor: ir.Operation
    length: int
    counter: int
    """The position of the counter among what the loop carries; other positions likewise."""
    constants: tuple[int, ...]
    slices: dict[int, ir.Value]
    """The arrays to scan: for each its element in the body."""
    carried: tuple[int, ...]
    stacked: dict[int, ir.Value]
    """The stacked results: for each its element in the body."""
    skipped: frozenset[ir.Value]
    """What the body only computes for the counter, and the arrays that it updates."""
    around: tuple[ir.Value, ...]
    """Values that the body reads from around the loop."""

    @property
    def body(self) -> ir.Block:
        return self.anchor.regions[1].blocks[0]

    @property
    def inputs(self) -> tuple[int, ...]:
        return (*self.constants, *self.slices, *self.carried)


def scans(anchor: ir.Operation, evaluation: Evaluation) -> Iterator[LoweredCandidate]:
    """Yield the scans that a loop may be."""
    found = _parts(anchor)
    if found is None:
        return
    operands = [anchor.operands[place] for place in found.inputs]
    structs = tuple(attributes.struct(value.type) for value in (*operands, *found.around))
    for reverse in (False, True):
        yield LoweredCandidate(_scan(found, evaluation, reverse), structs)


def _scan(
    loop: ScanLoop, evaluation: Evaluation, reverse: bool
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
    constants = {value: found[()] for value in captured(loop.anchor) for found in _constant(value)}

    def function(*inputs: Array) -> Sequence[jax.Array]:
        given = dict(zip((*loop.inputs, *loop.around), inputs, strict=True))

        def step(carry: list[Array], elements: list[Array]) -> tuple[list[Array], object]:
            values = {value: given[value] for value in loop.around} | constants
            values |= dict.fromkeys(loop.skipped)
            values |= dict(zip(loop.slices.values(), elements, strict=True))
            arguments: list[Array] = [None] * len(body.arguments)
            for place in loop.constants:
                arguments[place] = given[place]
            for place, value in zip(loop.carried, carry, strict=True):
                arguments[place] = value
            with evaluation.inlining(bodies):
                results = evaluation.values(body, arguments, values)
            end = [*body.operations][-1].operation.operands
            following = [results[end[place]] for place in loop.carried]
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


def _constant(value: ir.Value) -> list[np.ndarray]:
    found = constant_of(value)
    return [] if found is None else [found]


def _parts(anchor: ir.Operation) -> ScanLoop | None:
    """Return the parts of a loop with a counter from zero to a constant."""
    condition, body = (region.blocks[0] for region in anchor.regions)
    end = [*body.operations][-1].operation.operands
    arguments = [*body.arguments]
    counted = _counter(condition)
    if counted is None:
        return None
    counter, length = counted
    start = constant_of(anchor.operands[counter])
    if start is None or start.shape or int(start) or not _is_next(end[counter], arguments[counter]):
        return None
    positions = _computed_from(arguments[counter], body)
    constants = constants_of_loop(condition, body)
    slices: dict[int, ir.Value] = {}
    stacked: dict[int, ir.Value] = {}
    skipped = {*positions}
    for place, argument in enumerate(arguments):
        users = [use.owner.operation for use in argument.uses]
        if place in constants and len(users) == 2:
            element = next((user for user in users if user.name == "func.call"), None)
            if element is not None and _takes(element, argument, positions, 2):
                slices[place] = element.results[0]
        elif place != counter and len(users) == 1:
            update = owner_of(end[place])
            if update is not None and _takes(update, argument, positions, 3):
                stacked[place] = update.operands[1]
                skipped.add(update.results[0])
    indexed = {*slices.values(), *(end[place] for place in stacked)}
    for value in positions:
        for use in value.uses:
            results = {*use.owner.operation.results}
            if results and not results & (indexed | positions):
                return None
    carried = [
        place
        for place in range(len(arguments))
        if place not in constants and place != counter and place not in stacked
    ]
    around = dict.fromkeys(value for value in captured(anchor) if not is_constant(value))
    return ScanLoop(
        anchor,
        length,
        counter,
        tuple(place for place in sorted(constants) if place not in slices),
        slices,
        tuple(carried),
        stacked,
        frozenset(skipped - {arguments[counter]}),
        tuple(around),
    )


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
