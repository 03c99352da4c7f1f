"""What a function's body shows of its parameters, and the values that it is interpreted on."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape


@dataclass(eq=False, slots=True)
class Evidence:
    """What the uses of one parameter show."""

    name: str
    shape: Shape = field(default_factory=Shape)
    array: int = 0
    """Uses as an array."""
    number: int = 0
    """Uses in arithmetic, which numbers allow too."""
    integer: bool = False
    """It is an index, or integer labels."""
    boolean: bool = False
    random: bool = False
    """It is passed to `jax.random` as a key."""
    static: bool = False
    """It is a Python integer: a size, a number of iterations, or an axis."""
    axis: bool = False
    shape_like: bool = False
    """It is the shape of an array."""
    dtype: bool = False
    called: bool = False
    choices: list[str] = field(default_factory=list)
    """Constants that it is compared with, as source."""
    keys: dict[str, Evidence] = field(default_factory=dict)
    """What is known of the items of a dict, by their keys as source."""
    members: dict[str, Evidence] = field(default_factory=dict)
    """What is known of these attributes."""
    tested: bool = False
    """It decides a branch."""
    optional: bool = False
    """Its default is `None`."""
    instance: bool = False
    """It is the `self` of a method."""

    def key(self, source: str) -> Evidence:
        """Return what is known of the item of a key."""
        return self.keys.setdefault(source, Evidence(source.strip("'\"")))


@dataclass(frozen=True, slots=True, eq=False)
class Param:
    """The value of a parameter, whatever it is."""

    evidence: Evidence


@dataclass(frozen=True, slots=True, eq=False)
class Arr:
    """An array."""

    shape: Shape
    loose: bool = False
    """It may be broadcast: nothing follows from operations with it."""
    origin: Evidence | None = None
    """The parameter that its elements are from."""


@dataclass(frozen=True, slots=True, eq=False)
class Size:
    """A Python integer that is a size of an array."""

    dim: Dim


@dataclass(frozen=True, slots=True, eq=False)
class ShapeOf:
    """`x.shape`, or a slice of it."""

    shape: Shape
    start: int | None = None
    stop: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RankOf:
    """`x.ndim`, or a number more than it."""

    shape: Shape
    more: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    value: object


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A tuple or a list."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Dotted:
    """A name of the module, or an attribute of one: `jnp.sum`."""

    dotted: str
    bound: Value | None = None
    """The object of a method: `x.sum`."""


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    pass


Value = Param | Arr | Size | ShapeOf | RankOf | Const | Items | Dotted | Unknown
Links = list[tuple[Shape, Shape]]
"""Pairs of shapes that are broadcast with each other."""
UNKNOWN = Unknown()


def facts_of(value: Value) -> Evidence:
    """Return what is known of a parameter; of another value, facts that nobody reads."""
    return value.evidence if isinstance(value, Param) else Evidence("")
