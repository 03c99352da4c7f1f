"""Sizes by name: what `where` and the settings say they are, and the numbers that shapes come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxsight.engine.examples.notation import (
    Arithmetic,
    Named,
    Number,
    Size,
    names_in,
    show_size,
)
from jaxsight.engine.examples.problems import CONFLICT, UNKNOWN_SIZE, Malformed, nearest, problem

LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """`defined` by `where` lines, possibly by other sizes; `given` by the settings. The defined ones win."""

    defined: Mapping[str, Size]
    given: Mapping[str, int]

    def value(self, size: Size) -> int:
        """The number that a size comes to; raises `Malformed` at the name or the operation that has none."""
        return self._value(size, ())

    def knows(self, name: str) -> bool:
        return name in self.defined or name in self.given

    def used(self, size: Size) -> frozenset[str]:
        """The names that a size needs, those that its names are defined by too."""
        seen: set[str] = set()
        waiting = list(names_in(size))
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                if name in self.defined:
                    waiting.extend(names_in(self.defined[name]))
        return frozenset(seen)

    def _value(self, size: Size, inside: tuple[str, ...]) -> int:
        match size:
            case Number(value):
                return value
            case Named(name, range):
                if name in inside:
                    circle = " → ".join((*inside[inside.index(name) :], name))
                    raise Malformed(
                        problem(CONFLICT, range, f"size `{name}` is defined by itself: {circle}")
                    )
                if name in self.defined:
                    return self._value(self.defined[name], (*inside, name))
                if name in self.given:
                    return self.given[name]
                raise Malformed(problem(UNKNOWN_SIZE, range, self._unknown(name)))
            case Arithmetic(operator, left, right, range):
                first, second = self._value(left, inside), self._value(right, inside)
                shown = show_size(size)
                if operator in ("//", "%") and second == 0:
                    raise Malformed(problem(UNKNOWN_SIZE, range, f"`{shown}` divides by zero"))
                match operator:
                    case "+":
                        result = first + second
                    case "-":
                        result = first - second
                    case "*":
                        result = first * second
                    case "//":
                        result = first // second
                    case "%":
                        result = first % second
                if result < 0:
                    raise Malformed(
                        problem(UNKNOWN_SIZE, range, f"`{shown}` is {result}: a size is at least 0")
                    )
                if result > LARGEST:
                    raise Malformed(
                        problem(UNKNOWN_SIZE, range, f"`{shown}` is too large for a size")
                    )
                return result

    def _unknown(self, name: str) -> str:
        near = nearest(name, (*self.defined, *self.given))
        instead = f"did you mean `{near}`?" if near else f"add `where {name}=…`"
        return f"size `{name}` is not known: {instead}"
