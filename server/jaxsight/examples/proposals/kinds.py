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
    TREE = auto()
    """A pytree of arrays: the parameters of a model, gradients, a batch."""
    DICT = auto()
    """A dict whose keys are known."""
    LIST = auto()
    """A list of arrays or of tuples of them, or a tuple that is unpacked."""
    WIDTHS = auto()
    """A list of the sizes of layers: `[784, 512, 10]`."""
    SIZES = auto()
    """A dict of sizes by name."""
    OBJECT = auto()
    """An object of a class; the detail is the name of the class."""
    STUB = auto()
    """An object with the methods that the parameter is asked for."""
    OPTIMIZER_STATE = auto()
    FUNCTION = auto()
    FUNCTIONS = auto()
    PROGRAM = auto()
    """A probabilistic program of NumPyro."""
    DTYPE = auto()
    SHAPE = auto()
    AXIS = auto()
    AXES = auto()
    INTEGER = auto()
    SIZE = auto()
    """A number of something: a Python integer."""
    FLOAT = auto()
    FLAG = auto()
    STRING = auto()
    LITERAL = auto()
    """A Python literal; the detail is its source."""
    NONE = auto()
    MESH = auto()
    RNGS = auto()
    """The random number streams of flax.nnx."""
    SHAPE_AND_DTYPE = auto()
    """A `jax.ShapeDtypeStruct`."""


@dataclass(frozen=True, slots=True)
class What:
    """A kind, and its detail: the name of a class, the source of a literal."""

    kind: Kind
    detail: str = ""

    def __bool__(self) -> bool:
        return self.kind is not Kind.UNKNOWN


UNKNOWN = What(Kind.UNKNOWN)
SIZED = frozenset((Kind.ARRAY, Kind.LIST, Kind.TREE, Kind.DICT))
"""Kinds whose examples have arrays with shapes."""
PLAIN = frozenset(
    (Kind.INTEGER, Kind.FLOAT, Kind.FLAG, Kind.STRING, Kind.LITERAL, Kind.NONE, Kind.SIZE)
)
"""Kinds whose examples are Python literals."""
