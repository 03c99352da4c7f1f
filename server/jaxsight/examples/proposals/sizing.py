"""Choose sizes for shapes, different ones where nothing says that they are equal."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from itertools import chain, count

from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape
from jaxsight.examples.proposals.proposal import Length

_POOL = (4, 8, 16, 32, 64, 24, 48, 12, 40)
"""Each divides most of those after it, so that what a body divides is likely divisible."""
_LETTERS = ("N", "M", "K", "D", "E", "F", "P", "Q", "R", "S", "U", "V")
USUAL_RANK = 2
_HIGHEST_RANK = 8


class Sizing:
    """The shapes of a function's arrays."""

    def __init__(self, taken: set[str]) -> None:
        """Begin without shapes; `taken` names cannot be names of sizes."""
        self.sizes: dict[str, int] = {}
        self._taken = taken
        self._shapes: dict[str, Shape] = {}
        self._usual = [Dim() for _ in range(_HIGHEST_RANK)]
        """The last sizes of arrays about which nothing is known, from the end."""
        self._written: dict[int, Length] = {}
        self._numbers: Iterator[int] = chain(_POOL, count(56, 8))
        self._letters = chain(_LETTERS, (f"N{i}" for i in count(1)))
        self._is_laid_out = False

    def add(self, name: str, evidence: Evidence, kind: str) -> None:
        """Take the shape of a parameter."""
        self._is_laid_out = False
        self._shapes[name] = evidence.items if kind == "arrays" else evidence.shape
        for key, shape in evidence.keys.items():
            facts = evidence.labelled.get(key)
            if facts is not None and facts.keys:
                self.add(f"{name}[{key}]", facts, "dict")
            else:
                self._shapes[f"{name}[{key}]"] = shape
        if kind == "arrays" and evidence.item is not None:
            for part in evidence.item.parts:
                self.add(f"{name}/{part.name}", part, "array")
        if kind == "arrays":
            for part in evidence.parts:
                self.add(f"{name}/{part.name}", part, "array")

    def shape(self, name: str) -> tuple[Length, ...]:
        """Return the shape of a parameter that was added."""
        self._lay_out()
        dims = self._shapes[name].dims or []
        return tuple(self._written[id(dim.find())] for dim in dims)

    def usual(self, rank: int = USUAL_RANK) -> tuple[Length, ...]:
        """Return the shape of arrays about which nothing is known."""
        self._lay_out()
        return tuple(self._written[id(dim.find())] for dim in reversed(self._usual[:rank]))

    def _lay_out(self) -> None:
        """Fix all ranks, and choose all sizes."""
        if self._is_laid_out:
            return
        self._is_laid_out = True
        for shape in self._shapes.values():
            root = shape.find()
            if root.rank is None:
                rank = root.likely if root.likely is not None else USUAL_RANK
                extent = max([i + 1 for i in (*root.front, *root.back)], default=0)
                shape.set_rank(min(max(rank, root.least, extent), _HIGHEST_RANK))
        roots = {id(s.find()): s.find() for s in self._shapes.values()}
        uses: dict[int, int] = {}
        for shape in roots.values():
            for dim in {id(d.find()): d.find() for d in shape.dims or ()}.values():
                uses[id(dim)] = uses.get(id(dim), 0) + 1
        self._share(roots, uses)
        shared: dict[int, int] = {}
        for shape in roots.values():
            for key in {id(d.find()) for d in shape.dims or ()}:
                shared[key] = shared.get(key, 0) + 1
        for shape in self._shapes.values():
            for dim in shape.dims or ():
                self._write(dim.find(), shared.get(id(dim.find()), 0) > 1)
        for dim in (*reversed(self._usual[:USUAL_RANK]), *self._usual[USUAL_RANK:]):
            self._write(dim.find(), False)

    def _share(self, roots: dict[int, Shape], uses: dict[int, int]) -> None:
        """Give sizes that nothing is known about to all arrays alike, so that they broadcast."""
        origins = {
            id(dim.origin[0])
            for shape in roots.values()
            for dim in shape.dims or ()
            if dim.find().base is not None
        }
        for shape in roots.values():
            for distance, dim in enumerate(reversed(shape.dims or ())):
                root = dim.find()
                is_free = uses[id(root)] == 1 and not root.name and root.number is None
                is_free = is_free and root.base is None and id(root) not in origins
                if id(root) in self._written:
                    continue
                others = self._others(shape, distance)
                if is_free and not any(other.find() is root for other in others):
                    self._as_usual(root, self._usual[distance])

    def _as_usual(self, dim: Dim, usual: Dim) -> None:
        """Make a size the usual one, which may have been chosen already."""
        if id(usual.find()) in self._written:
            usual.unify(dim)
        else:
            dim.unify(usual)

    def _others(self, shape: Shape, distance: int) -> list[Dim]:
        dims = list(reversed(shape.dims or ()))
        return dims[:distance] + dims[distance + 1 :]

    def _write(self, dim: Dim, is_shared: bool) -> None:
        key = id(dim)
        if key in self._written:
            return
        if dim.number is not None:
            self._written[key] = dim.number
            return
        origin, more = dim.origin
        if origin is not dim:
            self._write(origin, False)
            first = self._written[id(origin)]
            number = self.sizes[first] if isinstance(first, str) else first
            self._written[key] = max(number + more, 1)
            return
        number = next(self._numbers)
        is_usual = any(usual.find() is dim for usual in self._usual)
        name = self._name(dim.name) if dim.name else ""
        if not name and is_shared and not is_usual:
            name = self._name(next(self._letters))
        if name:
            self.sizes[name] = number
        self._written[key] = name or number

    def _name(self, wanted: str) -> str:
        """Return a name for a size that no parameter and no other size has."""
        name = wanted.strip("_")
        if (
            not re.fullmatch(r"[A-Za-z]\w{0,23}", name)
            or keyword.iskeyword(name)
            or name == "where"
        ):
            name = next(self._letters)
        if name in self._taken:
            name = name.upper()
        while name in self._taken or name in self.sizes:
            name = next(self._letters)
        return name
