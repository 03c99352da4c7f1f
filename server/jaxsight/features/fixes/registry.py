"""The remedies of all rules that have one, by code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from jaxsight.rules import FIX_MODULES
from jaxsight.rules.fixing.remedy import Remedy


class _Remedies(Mapping[str, Remedy]):
    """Remedies whose modules are imported when they are first needed: all take 100 ms."""

    def __getitem__(self, code: str) -> Remedy:
        declared = import_module(FIX_MODULES[code]).REMEDY
        assert isinstance(declared, Remedy)
        return declared

    def __contains__(self, code: object) -> bool:
        return code in FIX_MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(FIX_MODULES)

    def __len__(self) -> int:
        return len(FIX_MODULES)


FIXES: Mapping[str, Remedy] = _Remedies()
