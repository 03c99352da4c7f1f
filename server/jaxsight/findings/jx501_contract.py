"""JX501: a contract of the docstring (`Expect (h100): kernels <= 3`) does not hold on its target."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping

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
    expect: Expect,
    figures: Mapping[str, int],
    target: str,
    worded: Callable[[str, int], str],
    upper: Collection[str] = (),
) -> Iterator[tuple[Condition, str]]:
    """Yield the conditions that do not hold, each with its message.

    Args:
        figures: by metric (`kernels`, `launches`, and `temp` and `folded` in bytes); -1 for unknown ones.
        target: the short name of the target that they are of.
        worded: a figure of a metric for people.
        upper: the metrics whose figure is the upper end of a range.
    """
    for condition in expect.conditions:
        figure = figures[condition.metric]
        limit = (
            f"{condition.metric} {condition.comparison} {worded(condition.metric, condition.value)}"
        )
        if figure < 0:
            yield condition, f"expected {limit} on {target}, but {condition.metric} is not known"
        elif not _COMPARISONS[condition.comparison](figure, condition.value):
            got = worded(condition.metric, figure)
            up_to = "up to " if condition.metric in upper else ""
            yield condition, f"expected {limit} on {target}, got {up_to}{got}"
