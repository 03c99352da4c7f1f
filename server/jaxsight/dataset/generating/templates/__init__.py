"""The templates, a module per group of categories; importing one registers its templates."""

from __future__ import annotations

import importlib
import pkgutil

MODULES = [
    importlib.import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)
]
