"""Finds out how a program fails, and how often."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from jaxsight.repro.failures import Failure
from jaxsight.repro.reducing.checker import Checker
from jaxsight.repro.reducing.options import CannotReduce

_RUNS = 3
"""How often a program runs, to find out whether its failure is flaky."""

_MORE_RUNS = 9
"""How often a flaky program runs in addition."""

_MISSED = 0.02
"""The accepted probability that a flaky failure does not appear in the runs of a candidate."""

_MOST_REPEATS = 20

C = TypeVar("C")


def calibrate(checker: Checker[C], candidate: C, is_expected: Callable[[Failure], bool]) -> float:
    """Run the original; set what the checker expects, and how often it runs each candidate.

    Returns:
        The fraction of runs that fail in this way.

    Raises:
        CannotReduce: none does.
    """
    settings = checker.settings
    failures = checker.runs(candidate, 1 if settings.check.seconds else _RUNS)
    expected = next(filter(is_expected, failures), None)
    if expected is None:
        seen = "; ".join(sorted({failure.headline for failure in failures}))
        raise CannotReduce(f"the program does not fail as expected ({seen})")
    settings.expected = expected
    settings.check = settings.check.calibrated(expected)
    hits = [settings.check.same(failure, expected) for failure in failures]
    if all(hits):
        return 1.0
    hits += [settings.check.same(each, expected) for each in checker.runs(candidate, _MORE_RUNS)]
    rate = sum(hits) / len(hits)
    if rate < 1:
        needed = math.ceil(math.log(_MISSED) / math.log(1 - rate))
        settings.repeats = min(max(needed, 2), _MOST_REPEATS)
    return rate
