"""How each primitive is spelled, with a module per group: `register` imports the rules.

`lax` and `pretty` have the rules of the two styles, in modules of the same names; `functions` those
for equations with inner programs, and `steps` those for what `folding` finds.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil


@functools.cache
def register() -> None:
    """Import every module of rules, once; importing them registers their rules."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
