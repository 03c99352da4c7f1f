"""The templates, a module per group of categories; importing one registers its templates."""

from __future__ import annotations

import importlib
import pkgutil

MODULES = [
    importlib.import_module(each.name)
    for each in pkgutil.walk_packages(__path__, prefix=f"{__name__}.")
]
