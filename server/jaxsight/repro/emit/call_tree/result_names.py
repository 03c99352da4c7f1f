"""Names for the results of calls."""

from __future__ import annotations

BASES = {
    "scan": "scanned",
    "while_loop": "looped",
    "fori_loop": "looped",
    "cond": "branch",
    "switch": "branch",
    "map": "mapped",
    "grad": "gradient",
    "value_and_grad": "value",
    "pullback": "cotangent",
}
"""Base names for the results of calls."""
