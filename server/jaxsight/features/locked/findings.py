"""The finding of a function that differs from its lock, at the line of the cause."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.features.locked.functions import LockableFunction
from jaxsight.locks.differences import FactDifference
from jaxsight.rules.finding import Finding, finding_of
from jaxsight.rules.jx502_changed_program.rule import RULE
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from jaxsight.text.inert import clause

_MESSAGE = 100
"""Characters of a finding's message."""


def finding_of_differences(
    found: LockableFunction, differences: Sequence[FactDifference], module: Module, help: str
) -> Finding:
    """Return the finding of a function that differs from its lock, at the line of the cause.

    The message is the difference that explains the others, which are notes.
    """
    first, *others = differences
    line = next((each.line for each in differences if each.line), 0)
    text = module.line(line - 1)
    ends = (
        Position(line - 1, len(text) - len(text.lstrip())),
        Position(line - 1, len(text.rstrip())),
    )
    on = found.section.target.partition(" ")[0]
    words = "; ".join(filter(None, (f"{first.change} on {on}", first.cause)))
    return finding_of(
        RULE.code,
        Range(*ends) if line else found.range,
        clause(words, _MESSAGE),
        help=help,
        notes=(f"`{found.name}` differs from jaxsight.lock", *(each.words for each in others)),
    )
