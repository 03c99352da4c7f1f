"""The first difference of two programs, and the exception that ends a comparison there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference of two programs: the equation's path (`3/body/1`), its part, both sides.

    `left` and `right` are text.
    """

    path: str
    part: str
    left: str
    right: str

    def __str__(self) -> str:
        where = f"equation {self.path}" if self.path else "the program"
        return f"{where}: {self.part}: {self.left} against {self.right}"


class Parted(Exception):
    """Two programs differ: ends a comparison."""

    def __init__(self, part: str, lhs: object, rhs: object) -> None:
        super().__init__(part)
        self.part = part
        self.lhs = lhs
        self.rhs = rhs
        self.path: list[str] = []


def difference_of(compare: Callable[..., None], *sides: object) -> Difference | None:
    """Return the difference that a comparison raises, or None."""
    try:
        compare(*sides)
    except Parted as parted:
        path = "/".join(reversed(parted.path))
        return Difference(path, parted.part, str(parted.lhs), str(parted.rhs))
    return None


class step:
    """Add a step to the path of a difference that is found inside the block."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, Parted):
            error.path.append(self.name)


class step_to_inner(step):
    """Add a step to the path of a difference in a program that a value contains."""

    __slots__ = ()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, Parted) and error.path:
            error.path.append(self.name)


def require(condition: bool, part: str, lhs: object, rhs: object) -> None:
    """Raise `Parted` unless two parts that satisfy `condition` are the same."""
    if not condition:
        raise Parted(part, lhs, rhs)


def require_same(part: str, lhs: object, rhs: object) -> None:
    """Raise `Parted` unless two plain values are equal."""
    require(lhs == rhs, part, lhs, rhs)
