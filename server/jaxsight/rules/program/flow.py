"""Who makes and who uses each value of a program, calls looked through.

Equations of a call that XLA inlines (`INLINED` in `wire/primitives.py`) replace the call, with its
operands in place of its inputs. Bodies of loops, branches and other calls are read too; their
inputs have no producer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from jaxsight.text.parsing import literal_in
from jaxsight.wire.chunks import Span
from jaxsight.wire.primitives import COPIES, INLINED, MOVES, RESHAPES
from jaxsight.wire.program import CONSTANT, LITERAL, Body, ProgramValue, Step, TracedProgram

Through = Collection[str] | Callable[[Step], bool]
"""Which equations a walk goes on through: a class of primitives, or a test of the equation."""
_MOST = 200
"""Steps that a walk looks at unless told otherwise, a choice as are the limits of rules: fewer do
not reach from end to end of long expressions, more make each equation of a large program a walk
through all others. What lies beyond is not known."""


class Flow:
    """Steps and values of a program, calls looked through."""

    def __init__(self, program: TracedProgram) -> None:
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
        self._read(program.body, None, None, (False, False, False))
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

    def value(self, number: int) -> ProgramValue:
        """Return the value of a number."""
        return self.values[self.of(number)]

    def producer(self, number: int) -> Step | None:
        """Return the step that computes a value; `None` for inputs, constants and literals."""
        return self.maker.get(self.of(number))

    def before(self, number: int, through: Through) -> int:
        """Return the value that a value was before steps that keep their first operand."""
        goes_on = _test(through)
        number = self.of(number)
        while (step := self.maker.get(number)) is not None and step.operands and goes_on(step):
            number = self.of(step.operands[0])
        return number

    def stripped(self, number: int, also: frozenset[str] = frozenset()) -> int:
        """Return the value that a value is a moved or reshaped copy of."""
        return self.before(number, MOVES | also)

    def maker_of(self, number: int, also: frozenset[str] = frozenset()) -> Step | None:
        """Return the step that makes what a value is a moved or reshaped copy of."""
        return self.producer(self.stripped(number, also))

    def literal(self, number: int) -> float | None:
        """Return the number of a value that is a moved or reshaped literal, else `None`."""
        value = self.values[self.stripped(number)]
        if value.origin != LITERAL or not value.said:
            return None
        if value.said.lstrip("-") in ("inf", "nan"):
            return float(value.said)
        try:
            found = literal_in(value.said)
            return float(found) if isinstance(found, int | float) else None
        except (ValueError, OverflowError):
            return None

    def alike(self, number: int, other_number: int, depth: int = 8) -> bool:
        """Whether values are computed alike from the same ones, in at most `depth` equations."""
        number, other_number = self.of(number), self.of(other_number)
        if number == other_number:
            return True
        first, second = self.producer(number), self.producer(other_number)
        a, b = self.values[number], self.values[other_number]
        if first is None or second is None:
            return a.origin == b.origin == LITERAL and bool(a.said) and a.said == b.said
        return (
            depth > 0
            and (first.primitive, first.parameters) == (second.primitive, second.parameters)
            and not (first.bodies or first.primitive.startswith("random_"))
            and first.results.index(number) == second.results.index(other_number)
            and len(first.operands) == len(second.operands)
            and a.shape == b.shape
            and all(
                self.alike(*pair, depth - 1)
                for pair in zip(first.operands, second.operands, strict=True)
            )
        )

    def enclosing(self, step: Step) -> Iterator[Step]:
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
            if not value.is_constant and number not in self.maker
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
        self, body: Body, parent: Step | None, span: Span | None, around: tuple[bool, bool, bool]
    ) -> None:
        """Read a body; what is around it has a rule, is of the backward pass, and is mapped."""
        ruled, backward, mapped = around
        for step in body.steps:
            step = _inside(step, span, backward=backward)
            if parent is not None:
                self.parent[step.path] = parent
            if ruled:
                self.ruled.add(step.path)
            is_mapped = mapped or step.mapped
            if is_mapped:
                self.mapped.add(step.path)
            is_ruled = ruled or step.primitive.startswith(("custom_jvp", "custom_vjp"))
            inside = is_ruled, step.backward, is_mapped
            if step.primitive in INLINED and step.bodies:
                inner = step.bodies[0]
                own = self.inputs_of(inner)
                if len(own) == len(step.operands):
                    self._same.update(zip(own, map(self.of, step.operands), strict=True))
                self._read(inner, parent, step.span, inside)
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
                self._read(inner, step, step.span, inside)


def _test(through: Through) -> Callable[[Step], bool]:
    return through if callable(through) else lambda step: step.primitive in through


def _inside(step: Step, span: Span | None, *, backward: bool) -> Step:
    """Return a step with what the call around it says, which its own body does not."""
    if step.span is None and span is not None:
        step = replace(step, span=span)  # of a cached call, which knows not who calls
    if backward and not step.backward:
        step = replace(step, backward=True)  # scopes inside do not name the one around
    return step


def axis_after(flow: Flow, step: Step, axis: int) -> int | None:
    """Return where an axis of the first operand is in a result that has all of its elements."""
    match step.primitive:
        case "transpose":
            order = step.numbers("permutation")
            return order.index(axis) if axis in order else None
        case "broadcast_in_dim":
            axes = step.numbers("broadcast_dimensions")
            return axes[axis] if axis < len(axes) else None
        case primitive if primitive in RESHAPES:
            before, after = (
                [(size, place) for place, size in enumerate(flow.value(number).shape) if size != 1]
                for number in (step.operands[0], step.results[0])
            )
            places = {old: new for (_, old), (_, new) in zip(before, after, strict=False)}
            is_kept = [size for size, _ in before] == [size for size, _ in after]
            return places.get(axis) if is_kept else None
    return axis if step.primitive in COPIES else None
