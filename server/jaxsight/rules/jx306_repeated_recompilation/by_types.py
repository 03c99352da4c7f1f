"""Which calls of a Python loop compile, by the types that a trace of the loop passes to them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.program.steps import parameter
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.text.python_loops import FEW
from jaxsight.rules.text.statements import written
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import cut, quoted
from jaxsight.text.units import count
from jaxsight.wire.chunks import Span
from jaxsight.wire.primitives import JITS
from jaxsight.wire.program import LITERAL, Step, Value

_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_LEAST = 3
"""So many calls show that one of them differs."""


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of a jitted function from one place in a loop, in order."""

    function: str
    span: Span
    arguments: tuple[str, ...]
    """Those of the call as they are written."""
    types: Sequence[tuple[Value, ...]]
    """Of the operands of each call."""

    @classmethod
    def of(cls, view: ProgramView) -> Iterator[_Calls]:
        """Yield those of a program with the user's own functions."""
        own = {(call.span, call.name.rpartition(".")[2]) for call in view.calls if call.name}
        groups: dict[tuple[Span, str], list[Step]] = defaultdict(list)
        for step in view.program.body.steps:
            if step.primitive in JITS and step.span is not None:
                called = (step.span, str(parameter(step, "name")))
                if called in own:
                    groups[called].append(step)
        for (span, _), steps in groups.items():
            nodes = view.syntax(span)
            call = next((node for node in nodes if isinstance(node, ast.Call)), None)
            is_in_loop = any(isinstance(node, _LOOPS) for node in nodes)
            alike = {len(step.operands) for step in steps}
            if len(steps) >= _LEAST and call is not None and is_in_loop and len(alike) == 1:
                arguments = (*call.args, *(word.value for word in call.keywords))
                types = [tuple(view.program.values[n] for n in step.operands) for step in steps]
                yield cls(written(call.func), span, tuple(map(written, arguments)), types)

    def argument(self, position: int) -> str:
        """Return the argument that an operand is; nothing where trees are passed."""
        is_known = len(self.arguments) == len(self.types[0])
        return self.arguments[position] if is_known else ""

    def named(self, position: int) -> str:
        """Return an argument as messages name it."""
        return quoted(self.argument(position), "an argument", most=18)

    def begin_otherwise(self) -> Violation | None:
        """Return the finding of a state that the first call makes another type of."""
        first, second, *others = self.types
        if any(list(map(_type, other)) != list(map(_type, second)) for other in others):
            return None
        differ = [
            at
            for at, pair in enumerate(zip(first, second, strict=True))
            if _type(pair[0]) != _type(pair[1])
        ]
        if not differ:
            return None
        at = differ[0]
        before, after = first[at], second[at]
        is_number = before.weak and before.shape == after.shape and before.dtype == after.dtype
        if after.weak or (not is_number and len(self.types) <= FEW):
            return None  # layers of other sizes
        start = before.said if before.origin == LITERAL and before.said else "…"
        return Violation(
            f"{quoted(self.function, most=20)} compiles twice: {self.named(at)} is "
            + ("a Python number at first" if is_number else f"{cut(before.text, 20)} at first"),
            span=self.span,
            help=f"begin with the type that it has later: `jnp.{after.dtype}({start})`"
            if not after.shape
            else f"begin with an array of the type that it has later, {cut(after.text, 40)}",
            notes=(f"in later calls it is {cut(after.text, 40)}, which is another program",),
        )

    def end_smaller(self) -> Violation | None:
        """Return the finding of a last batch that is smaller."""
        first, *others, last = self.types
        if any(list(map(_type, other)) != list(map(_type, first)) for other in others):
            return None
        for at, (before, after) in enumerate(zip(first, last, strict=True)):
            rest = before.dtype, before.shape[1:], before.weak
            if rest == (after.dtype, after.shape[1:], after.weak) and after.shape < before.shape:
                rows = after.shape[0], before.shape[0]
                message, help, note = last_batch(self.function, self.argument(at), *rows)
                return Violation(message, span=self.span, help=help, notes=(note,))
        return None

    def differ_often(self) -> Violation | None:
        """Return the finding of an argument that has many shapes."""
        for at, values in enumerate(zip(*self.types, strict=True)):
            shapes = len({value.shape for value in values})
            if shapes > FEW:
                return Violation(
                    f"{quoted(self.function, most=20)} compiles {shapes:,} times in this loop: "
                    f"the shape of {self.named(at)} changes",
                    span=self.span,
                    help="pad it to one size and mask the rest, or to a few sizes",
                    notes=(f"{len(self.types):,} calls have {shapes:,} shapes",),
                )
        return None


def find(view: ProgramView) -> Iterator[Violation]:
    """Yield calls in a loop outside of `jit` that compile again because of an argument's type."""
    if view.is_staged(view.name):
        return
    for calls in _Calls.of(view):
        violation = calls.begin_otherwise() or calls.end_smaller() or calls.differ_often()
        if violation is not None:
            yield violation


def _type(value: Value) -> tuple[str, tuple[int, ...], bool]:
    return value.dtype, value.shape, value.weak


def last_batch(function: str, argument: str, last: int, others: int) -> tuple[str, str, str]:
    """Return the message, the help and the note about a smaller last batch."""
    batch, rows = quoted(argument, "batch", most=18), count(last, "row")
    return (
        f"{quoted(function, most=20)} compiles twice: the last {batch} has {rows}, not {others:,}",
        "drop the last batch, or pad it to the full size and mask the rest",
        "each shape is another program",
    )
