"""Find patterns in a traced program: which values and equations they are."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from jaxsight.rules.patterns.written import (
    expanded,
    hole_of,
    in_any_order,
    in_order,
    number_of,
    operands_of,
    pattern,
)
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.text.expressions import arguments, name_of, parsed
from jaxsight.wire.primitives import PICKS
from jaxsight.wire.program import Step

PRIMITIVES: Mapping[str, frozenset[str]] = {
    **{
        name: frozenset({name})
        for name in (
            "acos", "acosh", "asin", "atan2", "cbrt", "cos", "cosh", "cumprod", "cumsum", "erf",
            "exp", "log1p", "pow", "rsqrt", "sqrt", "tanh",
        )
    },
    "dot": frozenset({"dot_general"}),
    "log": frozenset({"log", "log2"}),
    "pick": PICKS,
    "prod": frozenset({"reduce_prod"}),
    "sigmoid": frozenset({"logistic"}),
    "sum": frozenset({"reduce_sum"}),
}  # fmt: skip
"""The primitives that a pattern calls by a name. Any other name is that of a function of the user's
call.
"""
_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
}
_SYNONYMS: Mapping[str, tuple[str, ...]] = {"sigmoid": ("sigmoid", "logistic", "expit")}
"""The functions that users call, where not of the same name."""
_MOST_TERMS = 200
"""Terms of a sum: loops that Python unrolls may add up more, and no pattern needs them."""


@dataclass(frozen=True, slots=True)
class Words:
    """What the names in a rule's patterns mean, besides those of primitives."""

    macros: Mapping[str, str] = field(default_factory=dict)
    """By name of a call the patterns that it abbreviates, in which `_` is its argument."""
    admits: Callable[[int], bool] = lambda number: True
    """Whether a value is one that a capital letter stands for; `N` stands for any literal."""
    inside: Mapping[str, Callable[[int], int]] = field(default_factory=dict)
    """By name of a call what is looked at in place of its operand."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A pattern in a program."""

    values: Mapping[str, int] = field(default_factory=dict)
    """By hole the value that it stands for."""
    around: Mapping[str, tuple[ast.expr, Step]] = field(default_factory=dict)
    """By hole the part of the pattern that it is an operand of, and that part's equation."""
    steps: tuple[Step, ...] = ()
    """The equations of the pattern; the first one completes it."""

    def through(self, step: Step) -> Occurrence:
        return replace(self, steps=(*self.steps, step))

    def bound(self, hole: str, value: int, part: ast.expr, step: Step) -> Occurrence:
        values, around = {**self.values, hole: value}, {**self.around, hole: (part, step)}
        return replace(self, values=values, around=around)

    def text(self, view: ProgramView, hole: str) -> str:
        """Return what the user wrote for a hole, where it is an argument or beside a number."""
        part, step = self.around[hole]
        match part, parsed(view.quote(step.path)):
            case ast.Call(func=ast.Name(id=name), args=[held]), ast.Call(args=[first, *_]) as call:
                if name_of(call) in _SYNONYMS.get(name, (name,)):
                    return arguments(call) if isinstance(held, ast.Starred) else ast.unparse(first)
            case ast.BinOp(), ast.BinOp(left=left, right=right):
                sides = [side for side in (left, right) if not isinstance(side, ast.Constant)]
                return ast.unparse(sides[0]) if len(sides) == 1 else ""
        return ""


class ProgramPatterns:
    """The patterns of a rule in one program."""

    def __init__(self, view: ProgramView, words: Words = Words()) -> None:
        self._view = view
        self._flow = view.flow
        self._words = words

    def at(self, step: Step, text: str) -> Occurrence | None:
        """Return the occurrence of a pattern, or of one of several, that an equation completes."""
        return next(
            (
                found
                for part in text.split(" | ")
                for found in self._parts(pattern(part), step.results[0], Occurrence())
            ),
            None,
        )

    def _parts(self, part: ast.expr, number: int, found: Occurrence) -> Iterator[Occurrence]:
        """Yield the ways in which a value is what a part of a pattern says."""
        step = self._flow.maker_of(number)
        if (value := number_of(part)) is not None:
            if self._flow.literal(number) == value:
                yield found
        elif step is not None and isinstance(part, ast.Call):
            yield from self._calls(part, number, step, found)
        elif step is not None:
            yield from self._operations(part, number, step, found.through(step))

    def _calls(
        self, part: ast.Call, number: int, step: Step, found: Occurrence
    ) -> Iterator[Occurrence]:
        assert isinstance(part.func, ast.Name)
        name, first = part.func.id, part.args[0]
        if name in self._words.macros:
            for text in self._words.macros[name].split(" | "):
                for longer in self._parts(expanded(text, first), number, found):
                    yield self._filling(part, number, step, longer)
        elif name not in PRIMITIVES:
            is_own = not found.steps or found.steps[0].span != step.span
            if is_own and self._view.called(step) == name:
                yield self._filling(part, number, step, found.through(step))
        elif step.primitive in PRIMITIVES[name]:
            inside = self._words.inside.get(name, self._flow.of)
            operands = [inside(operand) for operand in step.operands[: len(part.args)]]
            match = functools.partial(self._operand, part, step)
            yield from in_order(part.args, operands, found.through(step), match)

    def _operations(
        self, part: ast.expr, number: int, step: Step, found: Occurrence
    ) -> Iterator[Occurrence]:
        flow, match = self._flow, functools.partial(self._operand, part, step)
        match part:
            case ast.BinOp(left=base, op=ast.Pow()):
                factors = factors_of(step)
                if factors is not None and flow.alike(*factors):
                    yield from in_order([base], factors[:1], found, match)
            case ast.BinOp(op=ast.Add() | ast.Mult() as op) if (
                step.primitive == _OPERATORS[type(op)]
            ):
                several = [step.operands, *([terms_of(flow, number)] * isinstance(op, ast.Add))]
                for operands in dict.fromkeys(several):
                    yield from in_any_order(operands_of(part, type(op)), operands, found, match)
            case ast.BinOp(left=left, op=op, right=right) if step.primitive == _OPERATORS[type(op)]:
                yield from in_order([left, right], step.operands, found, match)
            case ast.UnaryOp(operand=operand) if step.primitive == "neg":
                yield from in_order([operand], step.operands, found, match)

    def _operand(
        self, part: ast.expr, step: Step, node: ast.expr, number: int, found: Occurrence
    ) -> Iterator[Occurrence]:
        """Yield the ways in which an operand is what a part of a pattern has in its place."""
        hole = hole_of(node)
        if not hole:
            yield from self._parts(node, number, found)
        elif hole == "N":
            if self._flow.literal(number) is not None:
                yield found
        elif hole in found.values:
            values = (self._flow.stripped(value) for value in (found.values[hole], number))
            if self._flow.alike(*values):
                yield found
        elif hole.islower() or self._words.admits(number):
            yield found.bound(hole, number, part, step)

    def _filling(self, part: ast.Call, number: int, step: Step, found: Occurrence) -> Occurrence:
        """Return an occurrence in which the arguments of a call that is no primitive are known."""
        for argument in part.args:
            hole = hole_of(argument)
            if hole and hole not in found.values:
                found = found.bound(hole, number, part, step)
        return found


def terms_of(flow: Flow, number: int) -> tuple[int, ...]:
    """Return what a value is the sum of, by `+`, without zeros; nothing where these are many."""
    waiting, terms = [number], list[int]()
    while waiting and len(terms) < _MOST_TERMS:
        term = waiting.pop()
        step = flow.maker_of(term)
        if step is not None and step.primitive == "add":
            waiting += reversed(step.operands)
        elif flow.literal(term) != 0:
            terms.append(term)
    return () if waiting else tuple(terms)


def factors_of(step: Step) -> tuple[int, ...] | None:
    """Return the two factors of a product, which are one value where it is written as a square."""
    match step.primitive:
        case "square":
            return step.operands * 2
        case "integer_pow" if step.parameter("y") == 2:
            return step.operands * 2
        case "mul":
            return step.operands
        case _:
            return None
