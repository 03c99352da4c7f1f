"""JX306: a call site has a function compiled for many types or static values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from jaxsight.rules.recompilation import FIRST_SHAPES, Miss, named
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted

RULE = Rule(
    "JX306",
    "repeated-recompilation",
    "Call site triggers repeated recompilation.",
    severity="warning",
    always=False,
)


@RULE.explains_misses
def explain(function: str, misses: Sequence[Miss]) -> Iterator[Violation]:
    """Yield what a call has compiled several times: static arguments, then types of arguments."""
    count = sum(miss.static for miss in misses) + 1
    if count >= FIRST_SHAPES:
        yield Violation(
            f"{named(function)} is compiled for {count} values of a static argument",
            help="make the argument dynamic, or pass fewer values",
        )
    types: dict[str, set[str]] = defaultdict(set)
    for miss in misses:
        for argument, now, before in miss.differs:
            if "weak_type" not in now:
                types[argument] |= {now, before}
    for argument, seen in types.items():
        if len(seen) >= FIRST_SHAPES:
            few = ", ".join(sorted(seen)[:4]) + (", …" if len(seen) > 4 else "")
            yield Violation(
                f"{named(function)} is compiled for {len(seen)} types of an argument",
                help="pad the argument to a few sizes",
                notes=(f"{quoted(argument)} is {few}",),
            )
