"""What a function's body shows of its parameters, and the values that it is interpreted on."""

from __future__ import annotations

from dataclasses import dataclass, field

# Shapes whose ranks and sizes are not known yet, and equations between them.
#
# A contradiction is ignored: code that has two branches may demand both.

_LONGEST = 8
"""Sizes that follow from each other in a chain: longer ones are circles."""


@dataclass(eq=False, slots=True)
class Dim:
    """A size. Sizes that are the same have one representative (`find`)."""

    name: str = ""
    """A name that the code gives it, as in `B, L, D = x.shape`."""
    number: int | None = None
    parent: Dim | None = None
    base: Dim | None = None
    """The size that this one is `more` greater than, as that of `x[1:]` is by -1."""
    more: int = 0
    is_one: bool = False
    """It is 1, and broadcast: nothing follows from what it meets."""

    def plus(self, more: int) -> Dim:
        """Return a size that is greater by a number."""
        root = self.find()
        if root.number is not None:
            return Dim(number=max(root.number + more, 0))
        if root.base is not None:
            return Dim(base=root.base, more=root.more + more) if root.more + more else root.base
        return Dim(base=root, more=more) if more else root

    @property
    def origin(self) -> tuple[Dim, int]:
        """The size that this one follows from, and by how much it is greater."""
        root, more = self.find(), 0
        for _ in range(_LONGEST):
            if root.base is None:
                break
            root, more = root.base.find(), more + root.more
        return root, more

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
        if one is two or len(numbers) > 1 or one.is_one or two.is_one:
            return
        if one.base is not None or two.base is not None:
            self._unify_origins(other)
            return
        two.parent = one
        one.name = one.name or two.name
        one.number = numbers.pop() if numbers else None

    def _unify_origins(self, other: Dim) -> None:
        (one, more), (two, further) = self.origin, other.origin
        if one is two:
            return
        if more == further:
            one.unify(two)
        elif further - more > 0 or one.base is not None:
            one.base, one.more = two, further - more
        else:
            two.base, two.more = one, more - further


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

    def fix(self, index: int, dim: Dim) -> None:
        """Make the size at an index another one; one that is 1 takes its place."""
        root = self.find()
        if dim.is_one and root.rank is not None and self.dim(index).find().number is None:
            root.front[index % root.rank] = dim
        else:
            self.dim(index).unify(dim)

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
        is_broadcast = any(d.find().is_one for s in (one, two) for d in s.front.values())
        if one.rank is not None and (one.rank != two.rank or is_broadcast):
            for i in range(1, min(one.rank, two.rank or 0) + 1):
                one.dim(-i).unify(two.dim(-i))
            return
        if is_broadcast or any(d.is_one for s in (one, two) for d in s.back.values()):
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
class UnknownValue:
    pass


Value = Param | Arr | Size | ShapeOf | RankOf | Const | Items | Dotted | UnknownValue
Links = list[tuple[Shape, Shape]]
"""Pairs of shapes that are broadcast with each other."""
UNKNOWN = UnknownValue()


def facts_of(value: Value) -> Evidence:
    """Return what is known of a parameter; of another value, facts that nobody reads."""
    return value.evidence if isinstance(value, Param) else Evidence("")
