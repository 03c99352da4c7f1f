"""How each primitive is spelled, with a module per group: `register` imports the rules.

`bound` has spellings for any primitive: the public function of the same name, and `bind`. A module
here registers rules for single equations in `view.LAX` and `view.PRETTY`, and rules for equations
with inner programs in `writer.STRUCTURES`.
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
    """Import every module of rules, once; importing them registers their rules."""
    for module in _MODULES:
        importlib.import_module(f"{__name__}.{module}")
