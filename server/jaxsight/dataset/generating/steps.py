"""Random steps of programs: what holes such as `mapped(x)` and `more(x)` of templates become.

Functions with jumps are applied to arguments only: rounding moves computed values across them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from jaxsight.dataset.generating.choices import COMPLEX, FLOATS, INTEGERS, WIDE, Draws
from jaxsight.dataset.generating.functions import (
    COMPARISONS,
    COMPLEX_FUNCTIONS,
    COMPLEX_PAIRS,
    CUMULATIVE,
    EVERYDAY,
    GIVEN_PAIRS,
    INTEGER_FUNCTIONS,
    INTEGER_PAIRS,
    INTEGER_TESTS,
    JUMPING,
    MOVES,
    NORMAL_FORMS,
    NUMBERS,
    PLAIN,
    RANK_MOVES,
    REDUCTIONS,
    SMOOTH,
    SPECIAL,
    SUMS,
    TESTS,
)


@dataclass(frozen=True, slots=True)
class Term:
    """An expression and its type.

    Attributes:
        text: the expression.
        dtype: as NumPy names it.
        rank: the number of its dimensions.
        is_given: whether it is an argument, or has the same bits eagerly and compiled.
        reads: the values that it depends on.
        name: a name for it, should it need one.
    """

    text: str
    dtype: str
    rank: int
    is_given: bool = False
    reads: frozenset[str] = frozenset()
    name: str = "inner"

    def __str__(self) -> str:
        return self.text if self.text.isidentifier() else f"({self.text})"


LONGEST = 36
"""Letters of an expression; a longer one is assigned to a name before it is used in another one. A
choice: two of them fit a line."""

_CURVED = {
    **{pattern: name for pattern, name in PLAIN.items() if name in ("bounded", "wave", "logs")},
    "jax.nn.softplus({x})": "rates",
    "jnp.square(jnp.tanh({x}))": "squares",
}

_EVERYDAY = {pattern: name for pattern, name in SMOOTH.items() if name in EVERYDAY}


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
        x = self.named(x) if pattern.count("{x}") > 1 or "{x}." in pattern else self.short(x)
        if y is not None:
            y = self.named(y) if pattern.count("{y}") > 1 else self.short(y)
        small = {"k": self.choices.between(2, 4), "m": self.choices.between(3, 9)}
        mask = self.choices.choose(3, 7, 15, 31, 63)
        text = pattern.format(x=x, y=y, mask=mask, **small, **holes)
        is_given = x.is_given and (y is None or y.is_given) and x.dtype not in FLOATS
        rank = max(x.rank, y.rank if y else 0)
        reads = x.reads | y.reads if y else x.reads
        return self.short(Term(text, x.dtype, rank, is_given, reads, name))

    def unary(self, x: Term, is_smooth: bool = False) -> Term:
        """Return a function of the elements of a value, of the same dtype."""
        if x.dtype in COMPLEX:
            return self.applied(COMPLEX_FUNCTIONS, x)
        if x.dtype == "bool":
            return replace(x, text=f"~{x}")
        if x.dtype in INTEGERS:
            return self.applied(INTEGER_FUNCTIONS, x)
        table = SMOOTH | (SPECIAL if x.dtype in WIDE else {})
        if x.is_given and not is_smooth and self.choices.chance(0.15):
            table = JUMPING
        elif self.choices.chance(0.7):
            # Nobody scales a value twice.
            table = {pattern: name for pattern, name in _EVERYDAY.items() if name != x.name}
        return self.applied(table, x)

    def binary(self, x: Term, y: Term, is_smooth: bool = False) -> Term:
        """Return a function of two values of one dtype; their shapes broadcast."""
        if x.text == y.text:
            return self.unary(x, is_smooth)
        if x.dtype == "bool":
            return self.applied(
                dict.fromkeys(("{x} & {y}", "{x} | {y}", "{x} ^ {y}"), "both"), x, y
            )
        if x.dtype in INTEGERS:
            return self.applied(INTEGER_PAIRS, x, y)
        if x.dtype in COMPLEX:
            return self.applied(COMPLEX_PAIRS, x, y)
        if x.is_given and y.is_given and not is_smooth and self.choices.chance(0.4):
            return self.applied(GIVEN_PAIRS, x, y)
        return self.applied(SUMS, x, y)

    def mapped(self, x: Term, most: int = 2) -> Term:
        """Return up to so many functions of a value, one at least."""
        for _ in range(self.choices.between(1, most)):
            x = self.unary(x)
        return x

    def mixed(self, *values: Term, is_smooth: bool = False) -> Term:
        """Return an expression that depends on each of some values."""
        x = self._tree(values, self.choices.between(1, 3), is_smooth)
        for value in values:
            if value.text in x.reads:
                continue
            if x.dtype in FLOATS:
                extra = self.choices.choose(
                    "{} + {}", "{} + 0.5 * {}", "{} - {}", "{} + jnp.tanh({})"
                )
                text = extra.format(self.short(x), value)
                x = replace(x, text=text, is_given=False, name="total")
            else:
                x = self.binary(x, value)
            reads = x.reads | {value.text}
            x = replace(self.short(x), rank=max(x.rank, value.rank), reads=reads)
        if is_smooth and "(" not in x.text:
            return self.applied(_CURVED, x)  # the derivative of a sum reads nothing
        is_bare = any(x.text == value.text for value in values)
        return self.unary(x, is_smooth) if is_bare else x

    def smooth(self, *values: Term) -> Term:
        """Return an expression with a derivative everywhere that depends on each of some values."""
        return self.mixed(*values, is_smooth=True)

    def _tree(self, values: tuple[Term, ...], depth: int, is_smooth: bool) -> Term:
        if depth <= 0 or (depth == 1 and self.choices.chance(0.2)):
            leaf = self.choices.pick(values)
            return replace(leaf, reads=frozenset({leaf.text}))
        if self.choices.chance(0.5):
            return self.unary(self._tree(values, depth - 1, is_smooth), is_smooth)
        one, other = (self._tree(values, depth - 1, is_smooth) for _ in range(2))
        return self.binary(one, other, is_smooth)

    def prepared(self, x: Term) -> Term:
        """Return a value, or one of the same shape made from it."""
        if self.choices.chance(0.4):
            return x
        if x.rank and x.dtype != "bool" and self.choices.chance(0.4):
            axis = self.axis(x)
            if x.dtype in FLOATS and self.choices.chance(0.5):
                return self.applied(NORMAL_FORMS, x, a=f"axis={axis}")
            turns = ("jnp.flip({x}, axis={axis})", "jnp.roll({x}, {k}, axis={axis})")
            return self.applied(dict.fromkeys(turns, "turned"), x, axis=axis)
        return self.unary(x)

    def settled(self, x: Term) -> Term:
        """Return a value after up to two plain steps."""
        for _ in range(self.choices.between(0, 2)):
            pattern, name = self.choices.pick(list(PLAIN.items()))
            x = replace(x, text=self.let(name, pattern.format(x=x)), is_given=False)
        return x

    def axis(self, x: Term) -> int:
        """Return one of the axes of a value."""
        return self.choices.between(0, max(0, x.rank - 1))

    def reduced(self, x: Term, axis: int | None = None) -> Term:
        """Return a reduction over an axis, or over all of them."""
        a = "" if axis is None else f", axis={axis}"
        rank = 0 if axis is None else max(0, x.rank - 1)
        result = x.dtype
        if x.dtype == "bool":
            pattern, result = self.choices.choose(
                ("jnp.sum({x}{a})", "int64"),
                ("jnp.any({x}{a})", "bool"),
                ("jnp.all({x}{a})", "bool"),
            )
        elif x.dtype in INTEGERS:
            pattern = self.choices.choose(
                "jnp.sum({x}{a}, dtype={x}.dtype)", "jnp.max({x}{a})", "jnp.min({x}{a})",
                "jnp.prod({x}{a}, dtype={x}.dtype)",
            )  # fmt: skip
        elif x.dtype in COMPLEX:
            pattern = "jnp.mean({x}{a})"
        else:
            tables = [each for each in REDUCTIONS if x.dtype in WIDE or "median" not in each]
            pattern = self.choices.pick(tables)
            result = "float32" if "median" in pattern else result
        name = REDUCTIONS.get(pattern, "folded")
        made = self.applied({pattern: name}, x, a=a)
        return replace(made, rank=rank, dtype=result)

    def moved(self, x: Term) -> Term:
        """Return a value with its elements moved."""
        if not x.rank:
            return self.unary(x)
        axis, order = self.axis(x), self.choices.sample(range(x.rank), x.rank)
        order = order[1:] + order[:1] if order == sorted(order) else order
        table = {**MOVES, "{x}[..., None]": "column"} if x.rank < 5 else MOVES
        if x.rank > 1:
            table = table | RANK_MOVES | {"{x}.reshape(-1)": "flat"}
        widths = [(0, 0)] * x.rank
        widths[axis] = (self.choices.between(0, 2), self.choices.between(1, 2))
        pattern, name = self.choices.pick(list(table.items()))
        made = self.applied(
            {pattern: name}, self.named(x), axis=axis, order=tuple(order), widths=tuple(widths)
        )
        rank = {"flat": 1, "column": x.rank + 1}.get(name, x.rank)
        return replace(made, rank=rank, is_given=x.is_given)

    def scanned(self, x: Term) -> Term:
        """Return a cumulative function or a sorted form of real numbers."""
        return self.applied(CUMULATIVE, x, axis=self.axis(x)) if x.rank else self.unary(x)

    def normalised(self, x: Term) -> Term:
        """Return real numbers normalised along an axis."""
        if not x.rank:
            return self.unary(x)
        return self.applied(NORMAL_FORMS, x, a=f"axis={self.axis(x)}")

    def compared(self, x: Term, y: Term | None = None) -> Term:
        """Return a comparison of values that are given."""
        tests = INTEGER_TESTS if x.dtype in INTEGERS else TESTS
        patterns: tuple[str, ...] = tests if y is None else COMPARISONS
        made = self.applied(dict.fromkeys(patterns, "mask"), x, y)
        return replace(made, dtype="bool", is_given=x.is_given)

    def number(self, x: Term, dtype: str) -> Term:
        """Return a value as moderate floating-point numbers."""
        kind = "integer" if x.dtype in INTEGERS else x.dtype
        pattern = self.choices.pick(NUMBERS.get(kind, NUMBERS["float"]))
        made = self.applied({pattern: "numbers"}, x, d=f"jnp.{dtype}")
        if x.dtype in COMPLEX:
            dtype = {"complex64": "float32", "complex128": "float64"}[x.dtype]
        return replace(made, dtype=dtype, is_given=False)

    def step(self, x: Term) -> Term:
        """Return a value after one random step of any kind."""
        kind = self.choices.random.random()
        if x.dtype not in FLOATS:
            if x.rank and kind < 0.15:
                return self.reduced(x, self.axis(x))
            if x.rank and kind < 0.4:
                return self.moved(x)
            if kind < 0.5 and x.dtype in INTEGERS:
                return self.compared(x)
            if kind < 0.7 and x.dtype in (*COMPLEX, "bool"):
                return self.number(x, "float32")
            return self.unary(x)
        if not x.rank or kind < 0.3:
            return self.unary(x)
        if kind < 0.6:
            return self.reduced(x, None if self.choices.chance(0.3) else self.axis(x))
        if kind < 0.78:
            return self.normalised(x)
        return self.moved(x) if kind < 0.9 else self.scanned(x)

    def more(self, x: Term, *others: Term, most: int = 4) -> list[Term]:
        """Return what a function returns: a value after up to so many random steps, or two."""
        for other in others:
            if other.dtype == x.dtype and self.choices.chance(0.3):
                x = self.binary(x, other)
        for _ in range(min(most, self.choices.choose(0, 0, 1, 1, 1, 2, 2, 3))):
            before, x = x, self.step(x)
            if x.rank < before.rank and self.choices.chance(0.6):
                break  # people seldom go on with what they have reduced
        if x.dtype in FLOATS and x.rank and self.choices.chance(0.1):
            x = self.named(x)
            return [x, self.reduced(x)]
        return [x]
