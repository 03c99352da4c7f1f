"""States of the abstract interpreter: what is known of variables at one point of the code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

V = TypeVar("V")


@dataclass(slots=True)
class Environment(Generic[V]):
    """A value for each variable; a variable that is not there is unknown."""

    names: dict[str, V] = field(default_factory=dict)
    """By path: `state`, `state.params`, `buffers[0]`."""

    def copy(self) -> Self:
        """Return a state that changes by itself."""
        return type(self)(dict(self.names))

    def join(self, other: Self) -> Self:
        """Return what is known of variables whichever of two ways was gone."""
        joined = self.copy()
        for path in self.names.keys() | other.names.keys():
            value = self.either(path, self.names.get(path), other.names.get(path))
            if value is None:
                joined.names.pop(path, None)
            else:
                joined.names[path] = value
        return joined

    def either(self, _path: str, one: V | None, other: V | None) -> V | None:
        """Return the join of two values of a variable; `None` is for no value.

        Here, a variable that one way alone binds is bound: the other would raise an error.
        """
        if one is None or other is None or one == other:
            return other if one is None else one
        return one | other  # type: ignore[operator,no-any-return]  # sets, unless overridden

    def forget(self, path: str) -> None:
        """Drop what is known of a variable, and of what is in it."""
        inside = (f"{path}.", f"{path}[")
        for key in [key for key in self.names if key == path or key.startswith(inside)]:
            del self.names[key]
