"""How each primitive is spelled, a module per group: `register` makes the rules known.

`bound` holds what works for any primitive: the public function of the same name, and `bind`. A
module here registers rules for single equations in `view.LAX` and `view.PRETTY`, and rules for
equations that contain programs in `writer.STRUCTURES`.
"""

from __future__ import annotations

import functools
import importlib

_MODULES = (
    "calls", "contractions", "control", "derivatives", "effects", "elementwise", "folded",
    "foreign", "functional", "high", "indexing", "indices", "library", "linalg", "loops",
    "operators", "parallel", "random", "rare", "refs", "reductions", "shapes", "shaping",
    "statistics",
)  # fmt: skip


@functools.cache
def register() -> None:
    """Imports every module of rules; importing them registers their rules, once."""
    for module in _MODULES:
        importlib.import_module(f"{__name__}.{module}")
