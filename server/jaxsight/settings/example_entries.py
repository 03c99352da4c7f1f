"""Add entries to the table `[tool.jaxsight.examples]` of a settings file's text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping

_HEADER = re.compile(r"^\[tool\.jaxsight\.examples\][^\n]*\n?", re.MULTILINE)


def with_entries(text: str, entries: Mapping[str, str]) -> str | None:
    """Return the text with more examples, by `module:function`.

    Returns `None` if its examples are written in a form that cannot be added to, or if it has one
    of the entries.
    """
    added = "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in entries.items())
    header = _HEADER.search(text)
    if header is not None:
        head = header[0] if header[0].endswith("\n") else f"{header[0]}\n"
        changed = text[: header.start()] + head + added + text[header.end() :]
    else:
        before = text.rstrip("\n") + "\n\n" if text.strip() else ""
        changed = f"{before}[tool.jaxsight.examples]\n{added}"
    try:
        table = tomllib.loads(changed)["tool"]["jaxsight"]["examples"]
        complete = all(table[key].strip() == value for key, value in entries.items())
    except (tomllib.TOMLDecodeError, LookupError, TypeError, AttributeError):
        return None
    return changed if complete else None


def _toml(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""\n{escaped}\n"""' if "\n" in value else f'"{escaped}"'
