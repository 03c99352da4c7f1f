"""What a loop captures, carries and reads row by row, in whichever way JAX writes its equation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.wire.program import Body, Step

COUNTER = 64
"""Bytes that the kernels of a loop counter read and write at most: some numbers of 8 bytes."""


@dataclass(frozen=True, slots=True)
class Carry:
    """A value that each iteration takes from the one before."""

    inner: int
    """The input of the body."""
    outer: int
    """The operand that it is in the first iteration."""
    output: int
    """What an iteration makes of it."""
    tested: int = -1
    """The input of the condition of a `while`."""


@dataclass(frozen=True, slots=True)
class LoopParts:
    """A `scan` or a `while`."""

    body: Body
    captured: Mapping[int, int]
    """By input of the body, or of the condition: the operand that it is in all iterations."""
    carries: tuple[Carry, ...]
    rows: Mapping[int, int]
    """By input of the body: the operand that it is a row of."""
    test: Body | None = None
    """The condition of a `while`."""

    def unchanged(self, flow: Flow) -> Iterator[tuple[int, int]]:
        """Yield the inputs that are the same in all iterations, each with its operand."""
        yield from self.captured.items()
        for carry in self.carries:
            if flow.of(carry.output) == carry.inner:
                yield carry.inner, carry.outer
                if self.test is not None:
                    yield carry.tested, carry.outer


def passed(flow: Flow) -> dict[int, int]:
    """Return by input of a body the operand that all of its elements are elements of.

    Those of `shard_map` are parts of an operand, those of a branch are one, those of a loop rows of
    one or what it does not change.
    """
    found: dict[int, int] = {}
    for step in flow.steps.values():
        if step.primitive in ("shard_map", "cond"):
            operands = step.operands[1:] if step.primitive == "cond" else step.operands
            for body in step.bodies:
                inputs = flow.inputs_of(body)
                if len(inputs) == len(operands):
                    found.update(zip(inputs, operands, strict=True))
        elif (loop := loop_of(flow, step)) is not None:
            found.update(loop.rows)
            found.update(loop.unchanged(flow))
    found.pop(-1, None)  # of a condition that is not there
    return found


def loop_of(flow: Flow, step: Step) -> LoopParts | None:
    """Read a loop; nothing where the equation is no loop, or has another form."""
    match step.primitive, step.bodies:
        case "scan", (body,):
            return _scan(flow, step, body)
        case "while", (test, body) if test.name.startswith("cond"):
            return _while(flow, step, test, body)
        case _:
            return None


def _scan(flow: Flow, step: Step, body: Body) -> LoopParts | None:
    trees = step.parameter("ft_in")  # from JAX 0.12 on: trees of constants, carry and rows
    if trees is None:
        constants, carried = (sum(step.numbers(name)) for name in ("num_consts", "num_carry"))
    elif isinstance(trees, tuple) and len(trees) == 3:
        constants, carried = (len(tree) if isinstance(tree, tuple) else 0 for tree in trees[:2])
    else:
        return None
    inputs, outer = flow.inputs_of(body), step.operands
    if len(inputs) != len(outer):
        return None
    first_row = constants + carried
    return LoopParts(
        body,
        dict(zip(inputs[:constants], outer, strict=False)),
        tuple(map(Carry, inputs[constants:first_row], outer[constants:first_row], body.outputs)),
        dict(zip(inputs[first_row:], outer[first_row:], strict=True)),
    )


def _while(flow: Flow, step: Step, test: Body, body: Body) -> LoopParts | None:
    of_test, of_body = (sum(step.numbers(name)) for name in ("cond_nconsts", "body_nconsts"))
    tested, inner = flow.inputs_of(test), flow.inputs_of(body)
    starts = step.operands[of_test + of_body :]
    if not len(inner) - of_body == len(tested) - of_test == len(starts) == len(body.outputs):
        return None
    return LoopParts(
        body,
        dict(zip((*tested[:of_test], *inner[:of_body]), step.operands, strict=False)),
        tuple(map(Carry, inner[of_body:], starts, body.outputs, tested[of_test:])),
        {},
        test,
    )
