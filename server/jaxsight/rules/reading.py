"""A traced program made easy to read: calls that XLA inlines are looked through, values know who
makes and who uses them.

Equations of a call (`jit`, `custom_jvp_call`…) stand in the place of the call, with its operands in
place of its inputs. Bodies of loops, branches and other calls are read too; their inputs come from
nowhere.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from jaxsight.compiler.protocol import Compiled, Folding
from jaxsight.compiler.targets import Target
from jaxsight.tracer.places import Span
from jaxsight.tracer.program import CONSTANT, LITERAL, Body, Program, Step, Value
from jaxsight.tracer.protocol import Fold, Runtime, Warned

_THROUGH = frozenset(
    {
        "jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call",
        "custom_vjp_call_jaxpr",
    }
)  # fmt: skip

ELEMENTWISE = frozenset(
    {
        "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh",
        "cbrt", "ceil", "clamp", "conj", "convert_element_type", "cos", "cosh", "digamma", "div",
        "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "imag",
        "integer_pow", "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt", "max", "min",
        "mul", "ne", "neg", "nextafter", "not", "or", "pow", "real", "complex", "rem", "round",
        "rsqrt", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
        "sin", "sinh", "sqrt", "square", "stop_gradient", "sub", "tan", "tanh", "xor", "copy",
        "copy_p",
    }
)  # fmt: skip
"""Primitives that compute each element of their result from one of each operand."""

SHAPED = frozenset(
    {
        "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "rev", "slice",
        "stack", "unstack", "split",
    }
)  # fmt: skip
"""Primitives that only move elements."""


@dataclass(frozen=True)
class Reading:
    """One traced function, and what it is on a target where that is known (`compiled`)."""

    name: str
    program: Program
    folds: Sequence[Fold]
    warnings: Sequence[Warned]
    quote: Callable[[str], str]
    """What the user wrote at an equation's place, on one line; empty where that is nothing."""
    around: Callable[[str], Sequence[ast.AST]]
    """The syntax around an equation's place in its function, the innermost first."""
    target: Target | None = None
    compiled: Compiled | None = None
    folding: Folding | None = None
    """How long that compiles with constant folding and without, where it was measured."""
    runtime: Runtime = field(default=Runtime())
    """What the user's programs run on by default."""
    exact: bool = True
    """Whether all ran that may have changed the values of what is captured."""
    numbers: frozenset[str] = frozenset()
    """Types of the Python numbers that the function was called with: `int`, `float`, `complex`."""

    def quoted(self, path: str) -> str:
        """The user's expression at an equation, in backticks and shortened; the primitive where
        there is none.
        """
        text = self.quote(path)
        if not text and (step := self.flow.steps.get(path)) is not None:
            return f"`{step.primitive}`"
        return f"`{text if len(text) <= 60 else text[:57] + '…'}`" if text else "this"

    def wrote(self, path: str, *names: str) -> bool:
        """Whether the user's expression there calls one of these functions itself: what a library
        does inside is not theirs to change.
        """
        text = self.quote(path)
        return any(re.search(rf"\b{name}\(", text) for name in names)

    @cached_property
    def flow(self) -> Flow:
        """Who makes and who uses what."""
        return Flow(self.program)


class Flow:
    """Steps and values of a program, calls looked through."""

    def __init__(self, program: Program) -> None:
        self.values = program.values
        self.inputs = program.body.inputs
        self._same: dict[int, int] = {}
        self.steps: dict[str, Step] = {}
        self.maker: dict[int, Step] = {}
        self.users: dict[int, list[Step]] = {}
        self.ruled: set[str] = set()
        """Paths of the steps inside of functions with derivative rules of their own."""
        self.mapped: set[str] = set()
        """Paths of the steps that were traced under `vmap`, those in calls and bodies included."""
        self.parent: dict[str, Step] = {}
        """By path: the step around it that is looked into but not through (a loop, a branch)."""
        self._read(program.body, None, None, False, False)
        self.outputs = tuple(map(self.of, program.body.outputs))

    def of(self, number: int) -> int:
        """The value that stands behind a number: inner inputs are the operands of their call."""
        while number in self._same:
            number = self._same[number]
        return number

    def value(self, number: int) -> Value:
        """The value behind a number."""
        return self.values[self.of(number)]

    def made_by(self, number: int) -> Step | None:
        """The step that makes a value; nothing for inputs, constants and literals."""
        return self.maker.get(self.of(number))

    def used_by(self, number: int) -> Sequence[Step]:
        """The steps that read a value."""
        return self.users.get(self.of(number), ())

    def above(
        self, number: int, through: Callable[[Step], bool], most: int = 200
    ) -> Iterator[Step]:
        """The steps that a value comes from, itself first, as long as `through` says to go on; at
        most so many.
        """
        waiting, seen = [self.of(number)], set[int]()
        while waiting and most:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            step = self.maker.get(each)
            if step is None:
                continue
            most -= 1
            yield step
            if through(step):
                waiting += map(self.of, step.operands)

    def sources(
        self, number: int, through: Callable[[Step], bool], most: int = 200
    ) -> set[int] | None:
        """The inputs, constants, literals and other values that a value is made from; `None` when
        it comes from too much.
        """
        waiting, seen, found = [self.of(number)], set[int](), set[int]()
        while waiting:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            if len(seen) > most:
                return None
            step = self.maker.get(each)
            if step is None or not through(step):
                found.add(each)
            else:
                waiting += map(self.of, step.operands)
        return found

    def inputs_of(self, body: Body) -> tuple[int, ...]:
        """The inputs of a body that its equation gives it; what it captures comes before them."""
        first = 0
        while first < len(body.inputs) and self.values[body.inputs[first]].origin == CONSTANT:
            first += 1
        return body.inputs[first:]

    def _read(
        self, body: Body, parent: Step | None, span: Span | None, ruled: bool, mapped: bool
    ) -> None:
        for step in body.steps:
            if step.span is None and span is not None:
                step = _at(step, span)
            if parent is not None:
                self.parent[step.path] = parent
            if ruled:
                self.ruled.add(step.path)
            if mapped or step.mapped:
                self.mapped.add(step.path)
            under = mapped or step.mapped
            within = ruled or step.primitive.startswith(("custom_jvp", "custom_vjp"))
            if step.primitive in _THROUGH and step.bodies:
                inner = step.bodies[0]
                own = self.inputs_of(inner)
                if len(own) == len(step.operands):
                    self._same.update(zip(own, map(self.of, step.operands), strict=True))
                self._read(inner, parent, step.span, within, under)
                for given, result in zip(inner.outputs, step.results, strict=False):
                    if self.of(given) != result:
                        self._same[result] = self.of(given)
                continue
            self.steps[step.path] = step
            for number in step.results:
                self.maker[number] = step
            for number in dict.fromkeys(map(self.of, step.operands)):
                self.users.setdefault(number, []).append(step)
            for inner in step.bodies:
                self._read(inner, step, step.span, within, under)


def _at(step: Step, span: Span) -> Step:
    """A step of a cached call, which knows not who calls, at the call's place."""
    return Step(
        step.path,
        step.primitive,
        step.operands,
        step.results,
        span,
        step.parameters,
        step.bodies,
        step.backward,
        step.mapped,
    )


def parameter(step: Step, name: str) -> object:
    """A parameter of an equation as a Python value, its text where it is no literal, `None` where
    it is not there.
    """
    text = dict(step.parameters).get(name)
    if text is None:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def numbers(step: Step, name: str) -> tuple[int, ...]:
    """A parameter that is a number or several."""
    found = parameter(step, name)
    if isinstance(found, int):
        return (found,)
    return tuple(n for n in found if isinstance(n, int)) if isinstance(found, tuple | list) else ()


def elements(value: Value) -> int:
    """How many elements an array has."""
    return math.prod(value.shape)


def is_known(value: Value) -> bool:
    """Whether a value is known while compiling."""
    return value.origin in (CONSTANT, LITERAL)


def captured(step: Step) -> tuple[int, ...]:
    """What a loop reads without changing it."""
    if step.primitive == "scan":
        given = parameter(step, "ft_in")  # from JAX 0.12 on: trees of constants, carry and rows
        if isinstance(given, tuple) and given and isinstance(given[0], tuple):
            return step.operands[: len(given[0])]
        return step.operands[: sum(numbers(step, "num_consts"))]
    if step.primitive == "while":
        return step.operands[
            : sum((*numbers(step, "cond_nconsts"), *numbers(step, "body_nconsts")))
        ]
    return ()
