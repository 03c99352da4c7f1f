"""When to trace in the background while the user types."""

from __future__ import annotations

SHORTEST = 0.05
LONGEST = 0.5
_SHARE = 0.5


def debounce(last_trace: float) -> float:
    """Return the seconds to wait after an edit: a share of the last trace's time, within bounds.

    clangd does the same.
    """
    return min(max(SHORTEST, last_trace * _SHARE), LONGEST)
