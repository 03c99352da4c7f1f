"""Named sizes: their values from `where` and the settings, and the values of shapes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jaxsight.examples.notation.values import (
    Arithmetic,
    NamedSize,
    Number,
    Operator,
    Size,
    names_in,
    show_size,
)
from jaxsight.examples.problems import (
    CONFLICT,
    UNKNOWN_SIZE,
    did_you_mean,
    malformed,
    quoted,
)
from jaxsight.text.inert import clause

LARGEST = 2**63 - 1
"""The largest size that XLA can represent: a dimension is an `int64` (`xla/shape.h`)."""
_OPERATIONS: Mapping[Operator, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes `defined` by `where` lines, and those `configured` in the settings, which rank lower.

    A definition may refer to other sizes.
    """

    defined: Mapping[str, Size]
    configured: Mapping[str, int]

    def value(self, size: Size) -> int:
        """Return the value of a size; raise `Malformed` at an undefined name or invalid value."""
        return self._value(size, ())

    def knows(self, name: str) -> bool:
        """Return whether a size has a value."""
        return name in self.defined or name in self.configured

    def used(self, size: Size) -> frozenset[str]:
        """Return the names that a size depends on, directly or by their definitions."""
        names: set[str] = set()
        waiting = list(names_in(size))
        while waiting:
            name = waiting.pop()
            if name not in names:
                names.add(name)
                if name in self.defined:
                    waiting.extend(names_in(self.defined[name]))
        return frozenset(names)

    def _value(self, size: Size, inside: tuple[str, ...]) -> int:
        match size:
            case Number(value):
                return value
            case NamedSize(name, range):
                if name in inside:
                    # With the words before it, less than `wording.MOST`.
                    circle = clause(" → ".join((*inside[inside.index(name) :], name)), 60)
                    raise malformed(range, f"circular size definition: {circle}", code=CONFLICT)
                if name in self.defined:
                    return self._value(self.defined[name], (*inside, name))
                if name in self.configured:
                    return self.configured[name]
                known = (*self.defined, *self.configured)
                help = did_you_mean(name, known, f"add `where {name}=…`")
                raise malformed(range, f"undefined size {quoted(name)}", help, UNKNOWN_SIZE)
            case Arithmetic(sign, left, right, range):
                first, second = self._value(left, inside), self._value(right, inside)
                shown = quoted(show_size(size))
                if sign in ("//", "%") and second == 0:
                    raise malformed(range, f"division by zero in {shown}", code=UNKNOWN_SIZE)
                value = _OPERATIONS[sign](first, second)
                if value < 0:
                    message = f"size {shown} is negative ({value})"
                    raise malformed(range, message, code=UNKNOWN_SIZE)
                if value > LARGEST:
                    message = f"size {shown} exceeds {LARGEST:,}"
                    raise malformed(range, message, code=UNKNOWN_SIZE)
                return value
