"""The remedies of all rules that have one, by code."""

from __future__ import annotations

from collections.abc import Mapping

from jaxsight.rules import RULES, Table, module_of
from jaxsight.rules.fixing.remedy import Remedy

FIXES: Mapping[str, Remedy] = Table(
    lambda: {
        code: remedy
        for code, rule in RULES.items()
        if isinstance(remedy := getattr(module_of(rule), "REMEDY", None), Remedy)
    }
)
