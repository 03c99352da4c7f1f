"""Several equations in a row as one expression, as people write them: `jnp.mean(x, 0)` for a sum
and a division.

A rule is registered for the names of the equations, the last of which gives the only result that is
used afterwards. What it offers is proved on the whole window before it is used, so the names alone
decide what is tried. Nothing outside the window may read what is made inside it, and its equations
follow one another, so that their order is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxsight.interpreters.compat.staging import Program, is_literal
from jaxsight.interpreters.same import value_token
from jaxsight.sourcerizer import spelling
from jaxsight.sourcerizer.exprs import Expr, Slot

LONGEST = 16
"""Equations of a window, at most."""

_MOST_KNOWN = 100_000
"""Rows of names that are remembered."""


@dataclass(frozen=True, slots=True)
class Window:
    """Equations in a row; `inputs` are the variables that they read from outside, in the order of
    first use.
    """

    equations: tuple[Any, ...]
    inputs: tuple[Any, ...]
    exact: bool
    """Literals are written with their dtype."""

    @property
    def output(self) -> Any:
        return self.equations[-1].outvars[0]

    def expr(self, atom: Any) -> Expr:
        """A variable from outside, or a literal. Raises `KeyError` for what is made inside."""
        if not is_literal(atom):
            for index, var in enumerate(self.inputs):
                if var is atom:
                    return Slot(index)
            raise KeyError(str(atom))
        value = np.asarray(atom.val).astype(getattr(atom.aval, "dtype", None))
        if not self.exact:
            try:
                return spelling.plain(value)
            except spelling.Unwritable:
                pass
        return spelling.typed(value)

    def maker(self, atom: Any) -> Any:
        """The equation of the window that makes a variable, or None."""
        for equation in self.equations:
            if any(var is atom for var in equation.outvars):
                return equation
        return None

    def find(self, *names: str) -> Any:
        """The last equation of one of these primitives. Raises `KeyError` where there is none."""
        for equation in reversed(self.equations):
            if equation.primitive.name in names:
                return equation
        raise KeyError(names[0])

    def origin(self, atom: Any, *through: str) -> Any:
        """What a value was before the window passed it through these primitives."""
        while (made := self.maker(atom)) is not None and made.primitive.name in through:
            atom = made.invars[0]
        return atom


Idiom = Callable[[Window], Iterator[Expr]]
"""Candidate expressions for a window, the best one first.

May raise `LookupError`, `ValueError` or `spelling.Unwritable`, which ends them.
"""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    idiom: Idiom
    plain: bool


class Idioms:
    """Rules by the name of their last equation."""

    def __init__(self) -> None:
        self._rules: dict[str, list[_Rule]] = {}
        self._alone: set[str] = set()
        self._known: dict[tuple[tuple[str, ...], bool], tuple[Idiom, ...]] = {}
        """The rules for names that were looked up before: long programs repeat themselves."""

    def __call__(self, *patterns: str, plain: bool = False) -> Callable[[Idiom], Idiom]:
        """Register a rule for names of equations in a row.

        A pattern is `"convert_element_type? reduce_sum|reduce_max div"`.

        `?` marks a name that may be missing, `*` one that comes any number of times, `|` a choice.

        Args:
            plain: it holds in the plain style too: no public function says less than these
                equations.
        """

        def registered(idiom: Idiom) -> Idiom:
            for pattern in patterns:
                compiled = _compiled(pattern)
                self._known.clear()
                if pattern.isidentifier():
                    self._alone.add(pattern)
                for last in _lasts(pattern):
                    self._rules.setdefault(last, []).append(_Rule(compiled, idiom, plain))
            return idiom

        return registered

    def of(self, names: Sequence[str], pretty: bool) -> tuple[Idiom, ...]:
        """Rules for exactly these equations, in a style."""
        key = (tuple(names), pretty)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            text = "".join(f"{name} " for name in names)
            known = self._known[key] = tuple(
                rule.idiom
                for rule in self._rules.get(names[-1], ())
                if (pretty or rule.plain) and rule.pattern.fullmatch(text)
            )
        return known

    def is_alone(self, name: str) -> bool:
        """Whether there are rules for a single equation, which see what rules of `view` do not:
        operands that are the same.
        """
        return name in self._alone

    def ends(self, name: str, pretty: bool) -> bool:
        """Whether a window may end with this primitive."""
        return any(pretty or rule.plain for rule in self._rules.get(name, ()))


def _compiled(pattern: str) -> re.Pattern[str]:
    parts = []
    for word in pattern.split():
        bare = word.rstrip("?*")
        names = "|".join(re.escape(name) for name in bare.split("|"))
        parts.append(f"(?:(?:{names}) ){word[len(bare) :]}")
    return re.compile("".join(parts))


def _lasts(pattern: str) -> Iterator[str]:
    """Names that what a pattern stands for may end with."""
    for word in reversed(pattern.split()):
        yield from word.rstrip("?*").split("|")
        if word[-1] not in "?*":
            return


IDIOMS = Idioms()


@dataclass(frozen=True, slots=True)
class Found:
    """A window from `start` on, and what it is written as."""

    start: int
    window: Window
    expr: Expr


def found(
    equations: Sequence[Any],
    uses: Mapping[int, int],
    prove: Callable[[Sequence[Window], Any], Expr | None],
    pretty: bool,
) -> dict[int, Found]:
    """Windows to be written as one, by where they start; none overlaps another.

    `uses` says how often each variable is read, results of the program included; `prove` gives a
    window's expression, or None.
    """
    windows: dict[int, Found] = {}
    names = [equation.primitive.name for equation in equations]
    position = len(equations) - 1
    while position >= 0:
        best = (
            _ending_at(equations, names, position, uses, prove, pretty)
            if IDIOMS.ends(names[position], pretty)
            else None
        )
        if best is None:
            position -= 1
        else:
            windows[best.start] = best
            position = best.start - 1
    return windows


def _ending_at(
    equations: Sequence[Any],
    names: Sequence[str],
    position: int,
    uses: Mapping[int, int],
    prove: Callable[[Sequence[Window], Any], Expr | None],
    pretty: bool,
) -> Found | None:
    last = equations[position]
    if last.effects or len(last.outvars) != 1:
        return None
    alone = IDIOMS.is_alone(names[position])
    starts = range(max(0, position + 1 - LONGEST), position + 1 if alone else position)
    for start in starts:
        if not IDIOMS.of(names[start : position + 1], pretty):
            continue
        inside = equations[start : position + 1]
        if not _closed(inside, uses):
            continue
        inputs = _inputs(inside)
        both = [Window(tuple(inside), inputs, exact) for exact in (False, True)]
        expr = prove(both, window_key(inside, inputs))
        if expr is not None:
            return Found(start, both[0], expr)
    return None


def candidates(window: Window, pretty: bool) -> Iterator[Expr]:
    """What all rules for a window's names offer in a style."""
    for idiom in IDIOMS.of([equation.primitive.name for equation in window.equations], pretty):
        try:
            yield from idiom(window)
        except (LookupError, ValueError, spelling.Unwritable):
            continue


def _closed(inside: Sequence[Any], uses: Mapping[int, int]) -> bool:
    """Whether only the last equation's results are read outside, and all were made under the same
    circumstances.
    """
    last = inside[-1]
    read: dict[int, int] = {}
    for equation in inside:
        for atom in equation.invars:
            if not is_literal(atom):
                read[id(atom)] = read.get(id(atom), 0) + 1
    return all(
        not equation.effects
        and (equation.ctx is last.ctx or equation.ctx == last.ctx)
        and all(read.get(id(var), 0) == uses.get(id(var), 0) for var in equation.outvars)
        for equation in inside[:-1]
    )


def _inputs(inside: Sequence[Any]) -> tuple[Any, ...]:
    made = {id(var) for equation in inside for var in equation.outvars}
    inputs: dict[int, Any] = {}
    for equation in inside:
        for atom in equation.invars:
            if not is_literal(atom) and id(atom) not in made:
                inputs.setdefault(id(atom), atom)
    return tuple(inputs.values())


def window_key(inside: Sequence[Any], inputs: Sequence[Any]) -> Any:
    """What decides how equations in a row are written, whichever variables they are about; None
    where that cannot be hashed.
    """
    number = {id(var): index for index, var in enumerate(inputs)}
    key: list[Any] = [tuple(var.aval for var in inputs)]
    for equation in inside:
        operands = tuple(
            (value_token(atom.val), atom.aval) if is_literal(atom) else number[id(atom)]
            for atom in equation.invars
        )
        for var in equation.outvars:
            number[id(var)] = len(number)
        key.append((equation.primitive, tuple(equation.params.items()), operands, equation.ctx))
    made = tuple(key)
    try:
        hash(made)
    except TypeError:
        return None
    return made


def program_key(program: Program) -> Any:
    """The same for programs that differ in nothing but their variables; None for those with
    constants, and where it cannot be hashed.
    """
    jaxpr = program.jaxpr
    if program.consts or jaxpr.constvars:
        return None
    key = window_key(jaxpr.eqns, jaxpr.invars)
    made = [*jaxpr.invars, *(var for equation in jaxpr.eqns for var in equation.outvars)]
    number = {id(var): index for index, var in enumerate(made)}
    results = tuple(
        (value_token(atom.val), atom.aval) if is_literal(atom) else number[id(atom)]
        for atom in jaxpr.outvars
    )
    return None if key is None else (key, results)
