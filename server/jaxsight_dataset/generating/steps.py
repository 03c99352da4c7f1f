"""Random steps of programs: what holes such as `mapped(x)` and `more(x)` of templates become.

Functions with jumps are applied to arguments only: rounding moves computed values across them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from jaxsight_dataset.generating import axes, functions
from jaxsight_dataset.generating.choices import COMPLEX, FLOATS, INTEGERS, WIDE, Draws


@dataclass(frozen=True, slots=True)
class Term:
    """An expression and its type.

    Attributes:
        text: the expression.
        dtype: as NumPy names it.
        rank: the number of its dimensions.
        is_given: whether it is an argument, or has the same bits eagerly and compiled.
        name: a name for it, should it need one; it also says what has been done to it.
    """

    text: str
    dtype: str
    rank: int
    is_given: bool = False
    name: str = "inner"

    def __str__(self) -> str:
        return self.text if self.text.isidentifier() else f"({self.text})"


LONGEST = 36
"""Letters of an expression; a longer one is assigned to a name before it is used in another one. A
choice: two of them fit a line."""


class Steps:
    """Writes random steps.

    Attributes:
        choices: where they come from.
        let: assigns an expression to a new name like a given one, and returns that name.
    """

    def __init__(self, choices: Draws, let: Callable[[str, str], str]) -> None:
        self.choices = choices
        self.let = let

    def named(self, x: Term) -> Term:
        """Return a value as a name."""
        return x if x.text.isidentifier() else replace(x, text=self.let(x.name, x.text))

    def short(self, x: Term) -> Term:
        """Return a value whose expression is short."""
        return x if len(x.text) <= LONGEST else self.named(x)

    def applied(
        self, table: Mapping[str, str], x: Term, y: Term | None = None, **holes: object
    ) -> Term:
        """Return one of the functions of a table, of one or two values."""
        pattern, name = self.choices.pick(list(table.items()))
        return self.written(pattern, name, x, y, **holes)

    def written(
        self, pattern: str, name: str, x: Term, y: Term | None = None, **holes: object
    ) -> Term:
        """Return the value of a pattern, after the assignments that it begins with."""
        is_repeated = pattern.count("{x}") > 1 or "{x}." in pattern or "\n" in pattern
        x = self.named(x) if is_repeated else self.short(x)
        if y is not None:
            y = self.named(y) if pattern.count("{y}") > 1 else self.short(y)
        filled: dict[str, object] = {
            "x": x,
            "y": y,
            "k": self.choices.between(2, 4),
            "m": self.choices.choose(5, 6, 7, 8, 9, 3),
            "mask": self.choices.choose(1, 3, 7, 15, 31, 63),
            "c": self.choices.choose(0.1, 0.2, 0.25, 0.5),
            "s": self.choices.choose(2.0, 3.0, 0.5, 1.5),
            "e": self.choices.choose("1e-3", "1e-5", "1e-6") if x.dtype in WIDE else "1e-3",
            **holes,
        }
        *before, last = pattern.split("\n")
        for line in before:
            target, _, value = line.partition(" = ")
            filled[target] = self.let(target, value.format(**filled))
        is_given = x.is_given and (y is None or y.is_given) and x.dtype not in FLOATS
        rank = max(x.rank, y.rank if y else 0)
        return Term(last.format(**filled), x.dtype, rank, is_given, name)

    def along(self, table: Mapping[str, str], x: Term, axis: int | None = None) -> Term:
        """Return one of the functions of a table that work along an axis, or along all."""
        a = "" if axis is None else f", axis={axis}"
        x = self.named(x)
        n = f"{x}.size" if axis is None else f"{x}.shape[{axis}]"
        keep = "" if axis is None else ", keepdims=True"
        return self.applied(table, x, a=a, axis=axis, keep=keep, n=n)

    # Functions of elements

    def unary(self, x: Term) -> Term:
        """Return a function of the elements of a value, of the same dtype."""
        if x.dtype in COMPLEX:
            return self.applied(functions.COMPLEX_FUNCTIONS, x)
        if x.dtype == "bool":
            return replace(x, text=f"~{x}")
        if x.dtype in INTEGERS:
            return self.applied(functions.INTEGER_FUNCTIONS, x)
        if not x.rank:
            return self.applied(functions.OF_NUMBERS, x)
        if x.is_given and self.choices.chance(0.1):
            return self.applied(functions.JUMPING, x)
        # Nobody scales a value twice.
        return self.applied(
            {p: name for p, name in functions.POINTWISE.items() if name != x.name}, x
        )

    def activated(self, x: Term, where: str = "program") -> Term:
        """Return the activations of real numbers, in a program or in a `kernel`."""
        if not x.rank:
            return self.applied(functions.OF_NUMBERS, x)
        return self.short(
            self.applied(functions.OF_KERNELS if where == "kernel" else functions.ACTIVATIONS, x)
        )

    def binary(self, x: Term, y: Term) -> Term:
        """Return a function of two values of one dtype; their shapes broadcast."""
        if x.text == y.text:
            return self.unary(x)
        if x.dtype == "bool":
            logical = ("{x} & {y}", "{x} | {y}", "{x} ^ {y}", "{x} & ~{y}")
            return self.applied(dict.fromkeys(logical, "both"), x, y)
        if x.dtype in INTEGERS:
            return self.applied(functions.INTEGER_PAIRS, x, y)
        if x.dtype in COMPLEX:
            return self.applied(functions.COMPLEX_PAIRS, x, y)
        if x.is_given and y.is_given and x.rank and self.choices.chance(0.3):
            return self.applied(functions.GIVEN_PAIRS, x, y)
        return self.applied(functions.SUMS, x, y)

    def mapped(self, x: Term, most: int = 2) -> Term:
        """Return a function of a value, the more complex the larger `most` is."""
        if x.dtype in FLOATS:
            if most > 1 and self.choices.chance(0.3 * (most - 1)):
                return self.short(self.smooth(x))
            return self.short(self.unary(x))
        for _ in range(self.choices.between(1, most)):
            x = self.short(self.unary(x))
        return x

    def mixed(self, *values: Term) -> Term:
        """Return an expression that depends on each of some values."""
        if values[0].dtype in FLOATS:
            return self.smooth(*values)
        total = values[0]
        if len(values) == 1 or self.choices.chance(0.5):
            total = self.short(self.unary(total))
        for other in values[1:]:
            rest = self.short(self.unary(other)) if self.choices.chance(0.3) else other
            total = self.short(self.binary(total, rest))
        return total

    def smooth(self, *values: Term) -> Term:
        """Return a curved function of real numbers that depends on each of some values.

        Its derivative exists everywhere, and is no constant.
        """
        x, *others = values
        if not others:
            powers = self.choices.chance(0.15)
            return self._curve(functions.POWERS if powers else functions.CURVES, x)
        y, *rest = others
        if not rest:
            return self._curve(functions.SURFACES, x, y)
        rank = max(value.rank for value in values)
        return replace(self._curve(functions.BLENDS, x, y, z=self.named(rest[0])), rank=rank)

    def _curve(
        self, table: Mapping[str, str], x: Term, y: Term | None = None, **holes: Term
    ) -> Term:
        """Return a function of a table in whose patterns are some of `BASES`."""
        x = self.named(x)
        y = y and self.named(y)
        pattern, name = self.choices.pick(list(table.items()))
        first, second = self.choices.sample(list(functions.BASES), 2)
        scale = self.choices.choose(2.0, 3.0, 0.5)
        f, g = (f"({base.format(x=x, s=scale)})" for base in (first, second))
        h = f"({second.format(x=y, s=scale)})"
        if "{f}" in pattern and len(pattern) + len(f) + len(h) > 56:
            f = self.let(functions.BASES[first], f)
        return self.written(pattern, name, x, y, f=f, g=g, h=h, **holes)

    def prepared(self, x: Term) -> Term:
        """Return a value, or one of the same shape made from it."""
        if self.choices.chance(0.5) or x.dtype == "bool" or not x.rank:
            return x
        axis = self.axis(x)
        if self.choices.chance(0.2):
            turns = ("jnp.flip({x}, axis={axis})", "jnp.roll({x}, {k}, axis={axis})")
            return self.applied(dict.fromkeys(turns, "turned"), x, axis=axis)
        if x.dtype in FLOATS and self.choices.chance(0.4):
            return self.along(axes.NORMAL_FORMS, x, axis)
        return self.short(self.unary(x))

    # Functions along an axis

    def axis(self, x: Term) -> int:
        """Return one of the axes of a value."""
        return self.choices.between(0, max(0, x.rank - 1))

    def reduced(self, x: Term, axis: int | None = None) -> Term:
        """Return a reduction over an axis, or over all of them."""
        rank = 0 if axis is None else max(0, x.rank - 1)
        result = x.dtype
        if x.dtype == "bool":
            table, result = {"jnp.sum({x}{a})": "count"}, "int64"
        elif x.dtype in INTEGERS:
            total = "jnp.sum({x}{a}, dtype={x}.dtype)"
            table = {total: "total"}
            if axis is not None:
                table |= {"jnp.max({x}{a})": "largest", "jnp.min({x}{a})": "smallest"}
        elif x.dtype in COMPLEX:
            table = dict.fromkeys(("jnp.mean({x}{a})", "jnp.sum({x}{a})"), "mean")
        elif not x.rank:
            return self.unary(x)
        else:
            general = axes.REDUCTIONS | (axes.WIDE_REDUCTIONS if x.dtype in WIDE else {})
            table = dict(axes.SUMMARIES.get(x.name, general))
            table = self._of_many(table) if axis is None else table
        made = self.along(table, x, axis)
        return replace(made, dtype=result, rank=rank, is_given=False)

    def _of_many(self, table: Mapping[str, str]) -> dict[str, str]:
        """Return those that read many elements: extremes of all depend on few arguments."""
        return {pattern: name for pattern, name in table.items() if name not in axes.EXTREMES}

    def moved(self, x: Term) -> Term:
        """Return a value with its elements moved."""
        if not x.rank:
            return self.unary(x)
        axis, order = self.axis(x), self.choices.sample(range(x.rank), x.rank)
        order = order[1:] + order[:1] if order == sorted(order) else order
        table = {**axes.MOVES, "{x}[..., None]": "column"} if x.rank < 5 else dict(axes.MOVES)
        if x.rank > 4:
            table.pop("jnp.expand_dims({x}, {axis})")
        if x.rank > 1:
            table = table | axes.RANK_MOVES | {"{x}.reshape(-1)": "flat"}
        widths = [(0, 0)] * x.rank
        widths[axis] = (self.choices.between(0, 2), self.choices.between(1, 2))
        pattern, name = self.choices.pick(list(table.items()))
        made = self.written(
            pattern, name, self.named(x), axis=axis, order=tuple(order), widths=tuple(widths)
        )
        rank = {"flat": 1, "column": x.rank + 1, "expanded": x.rank + 1}.get(name, x.rank)
        return replace(made, rank=rank, is_given=x.is_given)

    def scanned(self, x: Term) -> Term:
        """Return a cumulative function or a sorted form of real numbers."""
        return self.along(axes.CUMULATIVE, x, self.axis(x)) if x.rank else self.unary(x)

    def normalised(self, x: Term) -> Term:
        """Return real numbers normalised along an axis."""
        return self.along(axes.NORMAL_FORMS, x, self.axis(x)) if x.rank else self.unary(x)

    def compared(self, x: Term, y: Term | None = None) -> Term:
        """Return a comparison of values that are given."""
        tests = functions.INTEGER_TESTS if x.dtype in INTEGERS else functions.TESTS
        patterns: tuple[str, ...] = tests if y is None else functions.COMPARISONS
        made = self.applied(dict.fromkeys(patterns, "mask"), x, y)
        return replace(made, dtype="bool", is_given=x.is_given)

    def number(self, x: Term, dtype: str) -> Term:
        """Return a value as moderate floating-point numbers."""
        kind = "integer" if x.dtype in INTEGERS else x.dtype
        pattern = self.choices.pick(functions.NUMBERS.get(kind, functions.NUMBERS["float"]))
        made = self.applied({pattern: "numbers"}, x, d=f"jnp.{dtype}")
        if x.dtype in COMPLEX:
            dtype = {"complex64": "float32", "complex128": "float64"}[x.dtype]
        return replace(made, dtype=dtype, is_given=False)

    # What functions return

    def more(self, x: Term, *others: Term, most: int = 4, style: str = "data") -> list[Term]:
        """Return what a function returns: a value, what is made of it, or two values.

        `style` says what the value is: `data`, `quantity`, such as a distance, or `layer`, units of
        a neural network.
        """
        if x.dtype not in FLOATS:
            return [self._summarized(x, most)]
        for other in others:
            if other.dtype == x.dtype and self.choices.chance(0.3):
                x = self.short(self.applied(functions.RESIDUALS, x, other))
        count = min(most, self.choices.choose(0, 1, 1, 1, 2, 2))
        if not count:
            return [x]
        if not x.rank:
            return [self.unary(x) if self.choices.chance(0.15) else x]
        axis = self.axis(x)
        if count > 1 or self.choices.chance(0.3):
            if count == 1 and style == "data" and self.choices.chance(0.3):
                return [self.moved(x)]
            x = self._transformed(x, style, axis)
            if count == 1:
                return [x]
        along = None if self.choices.chance(0.25) else -1 if style == "layer" else axis
        if x.dtype not in WIDE and (x.rank == 1 or along is None):
            return [
                self._transformed(x, style, axis) if count == 1 else x
            ]  # a number is too coarse
        if count == 1 and style in ("data", "quantity") and self.choices.chance(0.2):
            return [self.along(dict.fromkeys(axes.PAIRS, "both"), x, along)]
        if style in ("layer", "quantity") and x.name not in axes.SUMMARIES:
            table = axes.POOLS if style == "layer" else axes.FIGURES
            return [self.along(self._of_many(table) if along is None else table, x, along)]
        return [self.reduced(x, along)]

    def _transformed(self, x: Term, style: str, axis: int) -> Term:
        """Return real numbers of the same shape made of others."""
        kind = self.choices.random.random()
        if style == "layer":
            return self.activated(x) if kind < 0.5 else self.along(axes.LAYER_FORMS, x, -1)
        if kind < 0.3:
            return self.applied(functions.FINAL, x)
        if kind < 0.8:
            return self.along(axes.SCALES if style == "quantity" else axes.NORMAL_FORMS, x, axis)
        scans = {pattern: name for pattern, name in axes.CUMULATIVE.items() if name != "ordered"}
        return self.along(scans, x, axis)

    def _summarized(self, x: Term, most: int) -> Term:
        """Return integers, booleans or complex numbers after some steps."""
        for _ in range(min(most, self.choices.choose(0, 1, 1, 1, 2))):
            kind = self.choices.random.random()
            if x.dtype in FLOATS:
                return x
            if x.rank and kind < 0.35:
                return self.reduced(x, self.axis(x))
            if x.rank and kind < 0.55:
                x = self.moved(x)
            elif kind < 0.65 and x.rank > 1 and x.dtype in INTEGERS:
                return self.compared(x)
            elif kind < 0.85 and x.dtype in (*COMPLEX, "bool"):
                x = self.number(x, "float32")
            else:
                x = self.unary(x)
        return x
