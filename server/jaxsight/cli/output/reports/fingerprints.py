"""Names of findings that stay the same while their lines move, for platforms that track them.

A finding is identified by its rule, the function around it and its source without spaces, so that
it is found again in text that was moved or formatted. Equal ones are numbered.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from jaxsight.cli.output.reports.reported import Reported
from jaxsight.source.module import Module

_parsed = lru_cache(maxsize=4)(Module.parse)  # findings are in the order of files


def fingerprints(reported: Sequence[Reported]) -> list[str]:
    """Return a name for each finding, which no other finding of the same file has."""
    seen = Counter[tuple[str, str]]()
    names = []
    for each in reported:
        name = _digest(each.finding.code, function_around(each), each.code)
        seen[each.path, name] += 1
        names.append(f"{name}:{seen[each.path, name]}")
    return names


def in_project(reported: Reported, fingerprint: str) -> str:
    """Return the name of a finding among those of all files below the working folder."""
    return _digest(Path(os.path.relpath(reported.path)).as_posix(), fingerprint)


def function_around(reported: Reported) -> str:
    """Return the qualified name of the innermost function around a finding; empty for none."""
    if not reported.path.endswith((".py", ".ipynb")):
        return ""
    found = _parsed(reported.source).function_at(reported.finding.range.start)
    return found[1].qualname if found is not None else ""


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
