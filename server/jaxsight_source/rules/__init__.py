"""How each primitive is spelled, with a module per group: `register` imports the rules.

`templates` is a table of the calls that need no code. `lax` and `pretty` have the other rules of
the two styles, `functions` those for equations with inner programs, and `steps` those for what
`folding` finds.
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
