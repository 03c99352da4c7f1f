"""What is said of arrays that are unpacked into another number of names than they have items."""

from __future__ import annotations

import ast
import re

from jaxsight.rules.differences import shape_text
from jaxsight.rules.failure_text import operand
from jaxsight.rules.text.expressions import unpacked
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted
from jaxsight.wire.observations import Failure

SCALAR = (
    "make it an array or a tuple where it is made: the initial carry of a loop has the structure "
    "that its body takes apart, such as `(a, b)`"
)


def of_unpacked(failure: Failure, expression: str, line: str) -> Violation | None:
    """Return what is said of an array that is unpacked into another number of names."""
    if (parts := unpacked(line)) is None:
        return None
    targets, value = parts
    type = operand(failure, value)
    if type is None or any(isinstance(each, ast.Starred) for each in targets):
        return None
    names, source = len(targets), quoted(ast.unparse(value), most=30)
    if failure.message.startswith("iteration over a 0-d array") and not type.shape:
        return Violation(f"{source} is a scalar, but unpacked into {names} values", help=SCALAR)
    if not re.match(r"too many values to unpack|not enough values to unpack", failure.message):
        return None
    if not type.shape or type.shape[0] == names:
        return None
    columns = "; unpack columns with `.T`" if names in type.shape[1:2] else ""
    return Violation(
        f"{source} has {type.shape[0]} rows, but is unpacked into {names} values"
        if len(type.shape) > 1
        else f"{source} has {type.shape[0]} items, but is unpacked into {names} values",
        help=f"unpacking takes axis 0 apart: use as many names as it is long{columns}",
        notes=(f"its shape is {shape_text(type.shape)}",),
    )
