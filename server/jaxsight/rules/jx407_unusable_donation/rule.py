"""JX407: a donated buffer fits no result, so it saves no memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import cut, quoted
from jaxsight_source.units import size

RULE = Rule(
    "JX407",
    "unusable-donation",
    "Donated buffer cannot be reused for any result.",
    severity="warning",
    of_whole_program=True,
)


@dataclass(frozen=True, slots=True)
class UnusableDonation:
    """A donated input that fits no result."""

    argument: str
    """The path of the input, `x` or `params['w']`; empty where it is unknown."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the donated inputs without a result left for them; `jit` pairs by shape and dtype."""
    program, flow = view.program, view.flow
    unmatched = Counter((v.dtype, v.shape) for v in map(flow.value, program.body.outputs))
    for index in program.donated:
        if index >= len(program.body.inputs):
            continue
        value = flow.values[program.body.inputs[index]]
        kind = value.dtype, value.shape
        if unmatched[kind] > 0:
            unmatched[kind] -= 1
            continue
        name = quoted(value.said, f"argument {index}", most=24)
        yield Violation(
            f"donated {name} cannot be reused: no result has type {cut(value.text, 28)}",
            help=f"do not donate it, or return a result of type {value.text}",
            notes=(f"its buffer takes {size(value.bytes)}, and the caller loses it for nothing",),
            data=UnusableDonation(value.said),
        )
