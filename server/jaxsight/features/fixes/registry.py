"""The remedies of all rules that have one, by code."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from jaxsight.rules import FIX_MODULES
from jaxsight.rules.fixing.remedy import Remedy


def _remedy(module: str) -> Remedy:
    declared = import_module(module).REMEDY
    assert isinstance(declared, Remedy)
    return declared


FIXES: Mapping[str, Remedy] = {code: _remedy(module) for code, module in FIX_MODULES.items()}
