"""A traced program with calls inlined, where each value knows its producer and its users.

Equations of a call that XLA inlines (`jit`, `custom_jvp_call`…) replace the call, with its operands
in place of its inputs. Bodies of loops, branches and other calls are read too; their inputs have no
producer.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from jaxsight.targets.target import Target
from jaxsight.wire.messages.compiling import Compiled, Folding
from jaxsight.wire.messages.replies import Fold, Runtime
from jaxsight.wire.observations import Warned
from jaxsight.wire.program import CONSTANT, LITERAL, Body, Program, Step, Value
from jaxsight.wire.spans import Span

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
    platform: str = ""
    """That of the first target that is asked for: `cpu`, `cuda`, `rocm` or `tpu`."""
    compiled: Compiled | None = None
    folding: Folding | None = None
    """How long that compiles with constant folding and without, where it was measured."""
    runtime: Runtime = field(default=Runtime())
    """What the user's programs run on by default."""
    exact: bool = True
    """Whether all ran that may have changed the values of what is captured."""
    numbers: frozenset[str] = frozenset()
    """Types of the Python numbers that the function was called with: `int`, `float`, `complex`."""
    differentiated: frozenset[str] = frozenset()
    """Its parameters that the module differentiates it by, outside of the program."""
    chosen: frozenset[str] = frozenset()
    """Those of them that `argnums` names, or the first one; not all that `jax.vjp` is given."""
    gradients: frozenset[str] = frozenset()
    """The module's names of functions that compute derivatives: `g` of `g = jax.grad(f)`."""

    def quoted(self, path: str) -> str:
        """Return the user's expression at an equation in backticks, shortened.

        Return the primitive where the expression is unknown.
        """
        text = self.quote(path)
        if not text and (step := self.flow.steps.get(path)) is not None:
            return f"`{step.primitive}`"
        return f"`{text if len(text) <= 60 else text[:57] + '…'}`" if text else "this"

    def wrote(self, path: str, *names: str) -> bool:
        """Return whether the user's expression there calls one of these functions itself.

        Calls inside of libraries do not count: they are not the user's to change.
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
        self._read(program.body, None, None, ruled=False, backward=False, mapped=False)
        self.outputs = tuple(map(self.of, program.body.outputs))

    @cached_property
    def returned(self) -> frozenset[int]:
        """What the program returns, and what the bodies of its loops and branches return."""
        inner = (
            self.of(number)
            for step in self.steps.values()
            for body in step.bodies
            for number in body.outputs
        )
        return frozenset({*self.outputs, *inner})

    def of(self, number: int) -> int:
        """Return the number of a value: that of the operand for an input of a call."""
        while number in self._same:
            number = self._same[number]
        return number

    def value(self, number: int) -> Value:
        """Return the value of a number."""
        return self.values[self.of(number)]

    def made_by(self, number: int) -> Step | None:
        """Return the step that computes a value; `None` for inputs, constants and literals."""
        return self.maker.get(self.of(number))

    def used_by(self, number: int) -> Sequence[Step]:
        """Return the steps that read a value."""
        return self.users.get(self.of(number), ())

    def above(
        self, number: int, through: Callable[[Step], bool], most: int = 200
    ) -> Iterator[Step]:
        """Yield the steps that a value is computed by, the last one first.

        Args:
            number: the value.
            through: whether to go on to the operands of a step.
            most: how many steps to look at.
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
        """Return the numbers of the values that a value is computed from.

        These are inputs, constants, literals and results of steps that `through` stops at. Return
        `None` where more than `most` values are involved.
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
        """Return the inputs of a body that its equation passes; captured ones come before them."""
        first = 0
        while first < len(body.inputs) and self.values[body.inputs[first]].origin == CONSTANT:
            first += 1
        return body.inputs[first:]

    def _read(
        self,
        body: Body,
        parent: Step | None,
        span: Span | None,
        *,
        ruled: bool,
        backward: bool,
        mapped: bool,
    ) -> None:
        for step in body.steps:
            if step.span is None and span is not None:
                step = replace(step, span=span)  # of a cached call, which knows not who calls
            if backward and not step.backward:
                step = replace(step, backward=True)  # scopes inside do not name the one around
            if parent is not None:
                self.parent[step.path] = parent
            if ruled:
                self.ruled.add(step.path)
            if mapped or step.mapped:
                self.mapped.add(step.path)
            around = {
                "ruled": ruled or step.primitive.startswith(("custom_jvp", "custom_vjp")),
                "backward": step.backward,
                "mapped": mapped or step.mapped,
            }
            if step.primitive in _THROUGH and step.bodies:
                inner = step.bodies[0]
                own = self.inputs_of(inner)
                if len(own) == len(step.operands):
                    self._same.update(zip(own, map(self.of, step.operands), strict=True))
                self._read(inner, parent, step.span, **around)
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
                self._read(inner, step, step.span, **around)


def parameter(step: Step, name: str) -> object:
    """Return a parameter of an equation as a Python value.

    Return its text where it is not a literal, and `None` where it is missing.
    """
    text = dict(step.parameters).get(name)
    if text is None:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def numbers(step: Step, name: str) -> tuple[int, ...]:
    """Return a parameter that holds one integer or several; other parameters are empty."""
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
    """Return the operands that a loop reads and does not change."""
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
