"""Writes plain data as YAML: mappings, lists, strings, numbers and booleans."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from jaxsight.dataset.program import Record

_PLAIN = re.compile(r"[A-Za-z][\w/<>*+-]*(?: [\w/<>*+-]+)*")
"""Strings that need no quotes, but for the words below."""

_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def dump(value: Record) -> str:
    """Return a mapping as YAML."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of a mapping or a list that is not empty."""
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, dict) and item:
                yield f"{_scalar(name)}:"
                yield from (f"  {line}" for line in _lines(item))
            elif isinstance(item, list) and item:
                yield f"{_scalar(name)}:"
                yield from _lines(item)
            else:
                yield f"{_scalar(name)}: {_scalar(item)}"
        return
    for item in value:
        if isinstance(item, dict | list) and item:
            for number, line in enumerate(_lines(item)):
                yield f"{'  ' if number else '- '}{line}"
        else:
            yield f"- {_scalar(item)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
