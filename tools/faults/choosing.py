"""Which of a line's tests are tried, and in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tools.faults.index import Case


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is tried of a set of tests."""

    tests: int = 150
    seconds: float = 60

    def times(self, factor: int) -> Limits:
        """Return limits that are so many times as large."""
        return Limits(self.tests * factor, self.seconds * factor)


def chosen(groups: Iterable[Sequence[Case]], limits: Limits) -> list[Case]:
    """Return tests within limits, those of the first group first.

    Of each group the cheapest test of each function, then the next one of each: cases of one
    function find the same. Tests of one file are kept together, as they share fixtures.
    """
    taken: list[Case] = []
    left = limits.seconds
    for group in groups:
        for case in _in_turns(group):
            if len(taken) == limits.tests:
                break
            if not taken or case.seconds <= left:
                taken.append(case)
                left -= case.seconds
    by_file = defaultdict[str, list[Case]](list)
    for case in taken:
        by_file[case.file].append(case)
    files = sorted(by_file.values(), key=lambda cases: sum(case.seconds for case in cases))
    return [case for cases in files for case in cases]


def _in_turns(cases: Sequence[Case]) -> list[Case]:
    by_function = defaultdict[str, list[Case]](list)
    for case in sorted(cases, key=lambda case: case.seconds):
        by_function[case.name.partition("[")[0]].append(case)
    turns = [(n, case) for of_one in by_function.values() for n, case in enumerate(of_one)]
    return [case for _, case in sorted(turns, key=lambda turn: (turn[0], turn[1].seconds))]
