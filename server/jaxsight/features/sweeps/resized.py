"""Example inputs with the sizes of a sweep: named sizes, and whole numbers that are arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from jaxsight.examples.resizing import SizedInputs
from jaxsight.examples.sets import ExampleSet
from jaxsight.queries.sizes.explorer import inputs_of
from jaxsight.queries.traces.query import Question
from jaxsight.sweeps.swept_sizes import Sizes, written
from jaxsight.wire.messages.inputs import Argument, ValueSpec
from jaxsight_source.units import some

_WHOLE = re.compile(r"\d+")
_LISTED = 8
"""Names that an error lists, a choice: those of most functions."""


@dataclass(frozen=True, slots=True)
class ResizableInputs:
    """A function's example inputs, and what of them may have other values."""

    inputs: SizedInputs
    numbers: Mapping[str, int | None]
    """Parameters that are whole numbers, and their values; `None` for a default."""

    @staticmethod
    def of(question: Question) -> ResizableInputs:
        """Return the inputs of a question.

        Raises:
            LookupError: they are those of a call, which has its own sizes.
        """
        name, inputs = question.subject.name, question.set
        if inputs.dry_call is not None:
            raise LookupError(
                f"the inputs of {name} are those of a call, whose sizes are fixed; "
                "add example inputs with a size, such as `x: f32[B, 128]` and `where B=8`"
            )
        sized, by_number = inputs_of(question)
        if inputs.assumed and by_number is not None:
            sized = by_number
        numbers: dict[str, int | None] = {
            argument.name: int(argument.spec.source)
            for argument in inputs.arguments
            if isinstance(argument.spec, ValueSpec) and _WHOLE.fullmatch(argument.spec.source)
        }
        given = {argument.name for argument in inputs.arguments}
        for parameter in question.subject.function.parameters:
            if parameter.name not in given and _WHOLE.fullmatch(parameter.default or ""):
                numbers[parameter.name] = None
        return ResizableInputs(sized, numbers)

    @property
    def given(self) -> dict[str, int | None]:
        """What may be swept, with its given value; `None` for a default."""
        return {**self.inputs.sizes, **self.numbers}

    def check(self, names: Iterable[str], function: str) -> None:
        """Check that the inputs have these sizes.

        Raises:
            LookupError: one is not there; the message lists those that are.
        """
        for name in names:
            if name in self.given:
                continue
            if name in self.inputs.definitions:
                raise LookupError(f"{name} of {function} follows from other sizes; sweep those")
            raise LookupError(
                f"{function} has no size {name}; it has {some([*self.given], _LISTED)}"
                if self.given
                else f"{function} has no named size: write {name} in its example inputs, such as "
                f"`x: f32[{name}, 128]` and `where {name}=8`"
            )

    def at(self, sizes: Sizes) -> ExampleSet | None:
        """Return the example set with other sizes; `None` if one that follows would be negative.

        Its name tells it from the set that the user works with, of which caches know the last.
        """
        named = {name: size for name, size in sizes.items() if name in self.inputs.sizes}
        resized = self.inputs.resized({**self.inputs.sizes, **named})
        if resized is None:
            return None
        values = {name: size for name, size in sizes.items() if name not in named}
        arguments = [
            Argument(argument.name, ValueSpec(str(values.pop(argument.name)), literal=True))
            if argument.name in values
            else argument
            for argument in resized.arguments
        ]
        arguments += [
            Argument(name, ValueSpec(str(size), literal=True)) for name, size in values.items()
        ]
        name = f"{resized.name} {written(sizes)}".lstrip()
        return replace(resized, name=name, arguments=tuple(arguments), expects=())
