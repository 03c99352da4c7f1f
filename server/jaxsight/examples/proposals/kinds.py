"""What a parameter can be.

`table` decides it from clues, and `writing` writes an example of each kind. To add a kind: a member
here, a row in `table.ROWS`, a case in `writing.ExampleWriter`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """A kind of parameter, constructor argument or field."""

    UNKNOWN = auto()
    ARRAY = auto()
    SCALAR = auto()
    """An array without axes: a hyperparameter that may be traced."""
    KEY = auto()
    DICT = auto()
    """A dict whose keys are known."""
    OBJECT = auto()
    """An object of a class; the detail is the name of the class."""
    DTYPE = auto()
    AXIS = auto()
    INTEGER = auto()
    FLOAT = auto()
    FLAG = auto()
    STRING = auto()
    LITERAL = auto()
    """A Python literal; the detail is its source."""
    NONE = auto()
    RNGS = auto()
    """The random number streams of flax.nnx."""
    OTHER = auto()
    """Something that the text does not tell enough of: a function, a pytree, a shape."""


@dataclass(frozen=True, slots=True)
class What:
    """A kind, and its detail: the name of a class, the source of a literal."""

    kind: Kind
    detail: str = ""

    def __bool__(self) -> bool:
        return self.kind is not Kind.UNKNOWN


UNKNOWN = What(Kind.UNKNOWN)
PLAIN = frozenset((Kind.INTEGER, Kind.FLOAT, Kind.FLAG, Kind.STRING, Kind.LITERAL, Kind.NONE))
"""Kinds whose examples are Python literals."""
