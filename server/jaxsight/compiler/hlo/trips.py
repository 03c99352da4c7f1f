"""Count the iterations of loops from their instructions, as libtpu does not write them.

A loop is counted if a number begins at a constant, each iteration adds a constant to it, and the
loop ends when it reaches a constant.
Such are the loops of `scan` and `fori_loop`, and those in which a partitioned matmul takes turns
with communication (`windowed_dot_general` in XLA).
"""

from __future__ import annotations

from jaxsight.hlo.text import Computation, Instruction

_SAME = frozenset({"copy", "bitcast"})


def count(
    loop: Instruction, around: Computation, condition: Computation, body: Computation
) -> int | None:
    """Return the iterations of a loop, or `None` if they are not known.

    Args:
        loop: the while instruction.
        around: the computation that it is in.
        condition: its condition.
        body: its body.
    """
    test = condition.root
    if test is None or test.opcode != "compare" or test.attribute("direction") != "LT":
        return None
    counter, limit = (_source(condition, name) for name in test.operands)
    index = _element(condition, counter)
    if index is None:
        return None
    begin = _initial(loop, around, index)
    end = _number(limit)
    if end is None and (fixed := _element(condition, limit)) is not None:
        kept = _element(body, _result(body, fixed)) == fixed
        end = _initial(loop, around, fixed) if kept else None
    step = _step(body, index)
    if begin is None or end is None or not step or step < 0:
        return None
    return max(0, -(-(end - begin) // step))


def _step(body: Computation, index: int) -> int | None:
    """Return what an iteration adds to an element of the carry, if it is a constant."""
    added = _result(body, index)
    if added is None or added.opcode != "add":
        return None
    terms = [_source(body, name) for name in added.operands]
    numbers = [number for term in terms if (number := _number(term)) is not None]
    elements = [_element(body, term) for term in terms]
    return numbers[0] if len(numbers) == 1 and index in elements else None


def _initial(loop: Instruction, around: Computation, index: int) -> int | None:
    """Return the number that an element of the carry begins with, if it is a constant."""
    carry = around.by_name.get(loop.operands[0]) if loop.operands else None
    if carry is None or carry.opcode != "tuple" or index >= len(carry.operands):
        return None
    return _number(_source(around, carry.operands[index]))


def _result(body: Computation, index: int) -> Instruction | None:
    root = body.root
    if root is None or root.opcode != "tuple" or index >= len(root.operands):
        return None
    return _source(body, root.operands[index])


def _source(computation: Computation, name: str) -> Instruction | None:
    """Return the instruction that computes a value, before copies of it."""
    instruction = computation.by_name.get(name)
    return None if instruction is None else computation.source(instruction, _SAME)


def _element(computation: Computation, instruction: Instruction | None) -> int | None:
    """Return the index of an element of the carry."""
    if instruction is None or instruction.opcode != "get-tuple-element":
        return None
    carry = computation.by_name.get(instruction.operands[0])
    index = instruction.attribute("index")
    return int(index) if carry is not None and carry.opcode == "parameter" and index else None


def _number(instruction: Instruction | None) -> int | None:
    if instruction is None or instruction.opcode != "constant":
        return None
    try:
        return int(instruction.literal)
    except ValueError:
        return None
