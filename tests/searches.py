"""What a run holds of the searches: long lists of cases that find what nobody thought of.

A search is no test of a change, so the gate (`make test`) holds ten cases of each, always the same:
`JAXSIGHT_SEARCH=sentinels`. Without the variable nothing is left out: `make test-all` runs whole
searches, and a case that failed is repeated by its name alone. Tests of a search are marked
`search`, as the gate holds them also where they are slow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

VARIABLE = "JAXSIGHT_SEARCH"
SENTINELS = 10

_Case = TypeVar("_Case")


def part(cases: Sequence[_Case]) -> list[_Case]:
    """Return the cases of this run: all, or ten at equal distances."""
    if os.environ.get(VARIABLE) != "sentinels" or len(cases) <= SENTINELS:
        return list(cases)
    return [cases[index * len(cases) // SENTINELS] for index in range(SENTINELS)]
