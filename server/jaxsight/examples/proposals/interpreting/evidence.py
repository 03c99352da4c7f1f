"""What a function's body shows of its parameters, and the values that it is interpreted on."""

from __future__ import annotations

from dataclasses import dataclass, field

# Shapes whose ranks and sizes are not known yet, and equations between them.
#
# A contradiction is ignored: code that has two branches may demand both.


@dataclass(eq=False, slots=True)
class Dim:
    """A size. Sizes that are the same have one representative (`find`)."""

    name: str = ""
    """A name that the code gives it, as in `B, L, D = x.shape`."""
    number: int | None = None
    parent: Dim | None = None

    def find(self) -> Dim:
        """Return the representative."""
        dim = self
        while dim.parent is not None:
            dim = dim.parent
        return dim

    def unify(self, other: Dim) -> None:
        """Make both the same size, unless they are different numbers."""
        one, two = self.find(), other.find()
        numbers = {one.number, two.number} - {None}
        if one is two or len(numbers) > 1:
            return
        two.parent = one
        one.name = one.name or two.name
        one.number = numbers.pop() if numbers else None


@dataclass(eq=False, slots=True)
class Shape:
    """A shape: sizes known from its front and from its back, and its rank, if it is known.

    `least` is the lowest possible rank, `likely` the rank that a branch of the code is made for.
    """

    rank: int | None = None
    least: int = 0
    likely: int | None = None
    front: dict[int, Dim] = field(default_factory=dict)
    back: dict[int, Dim] = field(default_factory=dict)
    """Sizes by their distance from the end, from 0."""
    parent: Shape | None = None

    @staticmethod
    def of(dims: list[Dim]) -> Shape:
        """Return a shape with known rank."""
        return Shape(rank=len(dims), least=len(dims), front=dict(enumerate(dims)))

    def find(self) -> Shape:
        """Return the representative."""
        shape = self
        while shape.parent is not None:
            shape = shape.parent
        return shape

    def dim(self, index: int) -> Dim:
        """Return the size at an index, which may count from the end."""
        shape = self.find()
        if shape.rank is not None:
            if not -shape.rank <= index < shape.rank:
                return Dim()
            return shape.front.setdefault(index % shape.rank, Dim())
        shape.least = max(shape.least, index + 1 if index >= 0 else -index)
        if index >= 0:
            return shape.front.setdefault(index, Dim())
        return shape.back.setdefault(-index - 1, Dim())

    def at_least(self, rank: int) -> None:
        """Raise the lowest possible rank."""
        shape = self.find()
        shape.least = max(shape.least, rank)

    def suggest(self, rank: int) -> None:
        """Make a rank the likely one, if none is."""
        shape = self.find()
        shape.likely = rank if shape.likely is None else shape.likely

    def set_rank(self, rank: int) -> bool:
        """Fix the rank; return whether it is that one now."""
        shape = self.find()
        if shape.rank is not None:
            return shape.rank == rank
        if rank < max([*(i + 1 for i in shape.front), *(i + 1 for i in shape.back), 0]):
            return False
        shape.rank = shape.least = rank
        for distance, dim in shape.back.items():
            index = rank - 1 - distance
            if index in shape.front:
                shape.front[index].unify(dim)
            else:
                shape.front[index] = dim
        shape.back = {}
        return True

    def settle(self) -> None:
        """Fix the rank that is likely, if none is known."""
        shape = self.find()
        if shape.rank is None and shape.likely is not None:
            shape.set_rank(max(shape.likely, shape.least))

    @property
    def dims(self) -> list[Dim] | None:
        """All sizes; `None` without a known rank."""
        shape = self.find()
        return None if shape.rank is None else [shape.dim(i) for i in range(shape.rank)]

    def unify(self, other: Shape) -> None:
        """Make both the same shape; of different ranks, the last sizes become the same."""
        one, two = self.find(), other.find()
        if one is two:
            return
        if one.rank is None and two.rank is not None:
            one, two = two, one
        if two.rank is None and one.rank is not None and not two.set_rank(one.rank):
            return
        if one.rank is not None:
            for i in range(1, min(one.rank, two.rank or 0) + 1):
                one.dim(-i).unify(two.dim(-i))
            return
        for sizes, others in ((one.front, two.front), (one.back, two.back)):
            for index, dim in others.items():
                if index in sizes:
                    sizes[index].unify(dim)
                else:
                    sizes[index] = dim
        one.least = max(one.least, two.least)
        one.likely = one.likely if one.likely is not None else two.likely
        two.parent = one


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
    random: bool = False
    """It is passed to `jax.random` as a key."""
    static: bool = False
    """It is a Python integer: a size, a number of iterations, or an axis."""
    axis: bool = False
    shape_like: bool = False
    """It is the shape of an array."""
    called: bool = False
    keys: dict[str, Evidence] = field(default_factory=dict)
    """What is known of the items of a dict, by their keys as source."""
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
    """`x.shape`."""

    shape: Shape


@dataclass(frozen=True, slots=True, eq=False)
class RankOf:
    """`x.ndim`."""

    shape: Shape


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
class UnknownValue:
    pass


Value = Param | Arr | Size | ShapeOf | RankOf | Const | Items | Dotted | UnknownValue
Links = list[tuple[Shape, Shape]]
"""Pairs of shapes that are broadcast with each other."""
UNKNOWN = UnknownValue()


def facts_of(value: Value) -> Evidence:
    """Return what is known of a parameter; of another value, facts that nobody reads."""
    return value.evidence if isinstance(value, Param) else Evidence("")
