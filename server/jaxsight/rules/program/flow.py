"""Who makes and who uses each value of a program, calls looked through.

Equations of a call that XLA inlines (`INLINED` in `wire/primitives.py`) replace the call, with its
operands in place of its inputs. Bodies of loops, branches and other calls are read too; their
inputs have no producer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from jaxsight.rules.program.steps import is_known
from jaxsight.wire.chunks import Span
from jaxsight.wire.primitives import INLINED
from jaxsight.wire.program import CONSTANT, Body, Program, Step, Value

Through = Collection[str] | Callable[[Step], bool]
"""Which equations a walk goes on through: a class of primitives, or a test of the equation."""
_MOST = 200
"""Steps that a walk looks at unless told otherwise, a choice as are the limits of rules: fewer do
not reach from end to end of long expressions, more make each equation of a large program a walk
through all others. What lies beyond is not known."""


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

    @cached_property
    def body_inputs(self) -> dict[int, Step]:
        """By input of a body: the equation that the body is of."""
        return {
            number: step
            for step in self.steps.values()
            for body in step.bodies
            for number in self.inputs_of(body)
        }

    def forward_steps(self, *primitives: str) -> Iterator[Step]:
        """Yield the steps of the forward pass, of some primitives or of all.

        Those in functions with derivative rules of their own are skipped: libraries and users who
        write such functions wrote what is in them on purpose.
        """
        for step in self.steps.values():
            if step.backward or step.path in self.ruled:
                continue
            if not primitives or step.primitive in primitives:
                yield step

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

    def before(self, number: int, through: Through) -> int:
        """Return the value that a value was before steps that keep their first operand."""
        goes_on = _test(through)
        number = self.of(number)
        while (step := self.maker.get(number)) is not None and step.operands and goes_on(step):
            number = self.of(step.operands[0])
        return number

    def around(self, step: Step) -> Iterator[Step]:
        """Yield the loops and branches that a step is in, the innermost first."""
        while (parent := self.parent.get(step.path)) is not None:
            yield parent
            step = parent

    def used_by(self, number: int) -> Sequence[Step]:
        """Return the steps that read a value."""
        return self.users.get(self.of(number), ())

    def backwards(self, number: int, through: Through, most: int = _MOST) -> Iterator[Step]:
        """Yield the steps that a value is computed by, the last one first.

        Args:
            number: the value.
            through: whether to go on to the operands of a step.
            most: how many steps to look at.
        """
        goes_on = _test(through)
        waiting, visited = [self.of(number)], set[int]()
        while waiting and len(visited) < most:
            value = waiting.pop()
            step = self.maker.get(value)
            if step is None or value in visited:
                continue
            visited.add(value)
            yield step
            if goes_on(step):
                waiting += map(self.of, step.operands)

    def forwards(
        self, number: int, through: Through, most: int = _MOST
    ) -> Iterator[tuple[int, Step]]:
        """Yield the steps that read a value or what is computed of it, each with what it reads.

        Args:
            number: the value.
            through: whether to go on to the results of a step.
            most: how many steps to look at.
        """
        goes_on = _test(through)
        waiting, visited = [self.of(number)], set[str]()
        while waiting:
            value = waiting.pop()
            for user in self.used_by(value):
                if user.path in visited:
                    continue
                if len(visited) == most:
                    return
                visited.add(user.path)
                yield value, user
                if goes_on(user):
                    waiting += map(self.of, user.results)

    def sources(self, number: int, through: Through, most: int = _MOST) -> set[int] | None:
        """Return the numbers of the values that a value is computed from.

        These are inputs, constants, literals and results of steps that `through` stops at. Return
        `None` where more than `most` values are involved.
        """
        goes_on = _test(through)
        waiting, visited, sources = [self.of(number)], set[int](), set[int]()
        while waiting:
            value = waiting.pop()
            if value in visited:
                continue
            visited.add(value)
            if len(visited) > most:
                return None
            step = self.maker.get(value)
            if step is None or not goes_on(step):
                sources.add(value)
            else:
                waiting += map(self.of, step.operands)
        return sources

    @cached_property
    def varying(self) -> frozenset[int]:
        """The values that depend on an input, which are not known while tracing."""
        varying = {
            number
            for number, value in enumerate(self.values)
            if not is_known(value) and number not in self.maker
        }
        for step in self.steps.values():
            if any(self.of(operand) in varying for operand in step.operands):
                varying.update(step.results)
        return frozenset(varying)

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
            step = _inside(step, span, backward=backward)
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
            if step.primitive in INLINED and step.bodies:
                inner = step.bodies[0]
                own = self.inputs_of(inner)
                if len(own) == len(step.operands):
                    self._same.update(zip(own, map(self.of, step.operands), strict=True))
                self._read(inner, parent, step.span, **around)
                for output, outer in zip(inner.outputs, step.results, strict=False):
                    if self.of(output) != outer:
                        self._same[outer] = self.of(output)
                continue
            self.steps[step.path] = step
            for number in step.results:
                self.maker[number] = step
            for number in dict.fromkeys(map(self.of, step.operands)):
                self.users.setdefault(number, []).append(step)
            for inner in step.bodies:
                self._read(inner, step, step.span, **around)


def _test(through: Through) -> Callable[[Step], bool]:
    return through if callable(through) else lambda step: step.primitive in through


def _inside(step: Step, span: Span | None, *, backward: bool) -> Step:
    """Return a step with what the call around it says, which its own body does not."""
    if step.span is None and span is not None:
        step = replace(step, span=span)  # of a cached call, which knows not who calls
    if backward and not step.backward:
        step = replace(step, backward=True)  # scopes inside do not name the one around
    return step
