"""JX501: a contract of the docstring (`Expect (h100): kernels <= 3`) does not hold on its target."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping

from jaxsight.engine.examples.expect import Condition, Expect

CODE = "JX501"

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


def broken(
    expect: Expect, figures: Mapping[str, int], worded: Callable[[str, int], str]
) -> Iterator[tuple[Condition, str]]:
    """The conditions that do not hold, each with its message.

    Args:
        figures: what was found, by metric (`kernels`, `launches`, and `temp` and `folded` in bytes); -1 for what nobody knows.
        worded: a figure of a metric for people.
    """
    for condition in expect.conditions:
        found = figures[condition.metric]
        if found < 0:
            yield condition, f"{condition.metric} is not known on {expect.target}"
        elif not _COMPARISONS[condition.comparison](found, condition.value):
            message = (
                f"{condition.metric} is {worded(condition.metric, found)} on {expect.target}, but "
                f"{condition.comparison} {worded(condition.metric, condition.value)} is expected"
            )
            yield condition, message
