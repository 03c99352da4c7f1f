"""What a run holds of the searches: long lists of cases that find what nobody thought of.

A search is no test of a change, so `.ci/test` holds a quarter of each, another one each day:
`JAXSIGHT_SEARCH` is a number, by default that of the day, and the four after each other hold all.
Without the variable, or with `all`, nothing is left out: a case that failed is repeated by its
name alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

VARIABLE = "JAXSIGHT_SEARCH"
PARTS = 4

_Case = TypeVar("_Case")


def part(cases: Sequence[_Case]) -> list[_Case]:
    """Return the cases of this run's part: every fourth one, or all, also where they are fewer."""
    seed = os.environ.get(VARIABLE) or "all"
    if seed == "all" or len(cases) < PARTS:
        return list(cases)
    return list(cases[int(seed) % PARTS :: PARTS])
