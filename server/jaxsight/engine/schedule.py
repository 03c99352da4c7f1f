"""When to trace in the background while somebody types."""

from __future__ import annotations

SHORTEST = 0.05
LONGEST = 0.5
_SHARE = 0.5


def debounce(last_trace: float) -> float:
    """Seconds to wait after an edit: a share of how long the last trace took, as clangd does,
    within bounds.
    """
    return min(max(SHORTEST, last_trace * _SHARE), LONGEST)
