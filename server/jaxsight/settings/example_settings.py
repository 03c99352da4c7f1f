"""What a document's example inputs depend on besides its text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxsight.examples.sets import OutsideSet
from jaxsight.wire.meshes import Mesh

LIBRARIES = frozenset({"site-packages", "dist-packages"})
"""Folders that hold installed libraries."""


@dataclass(frozen=True, slots=True)
class ExampleSettings:
    """What a document's example inputs depend on besides its text.

    These are settings (sizes, the project's examples, a mesh) and observed calls.
    """

    sizes: Mapping[str, int]
    examples: Mapping[str, str]
    mesh: Mesh | None = None
    observed: Mapping[tuple[str, str], tuple[OutsideSet, ...]] = field(default_factory=dict)
    """Observed calls by the path of a file and the id of a function in it (`Module.ids`)."""
    only_written: bool = False
    """Whether only what the user wrote as example inputs counts: no calls, and no proposals."""


# Add entries to the table `[tool.jaxsight.examples]` of a settings file's text.

_HEADER = re.compile(r"^\[tool\.jaxsight\.examples\][^\n]*\n?", re.MULTILINE)


def with_entries(text: str, entries: Mapping[str, str]) -> str | None:
    """Return the text with more examples, by `module:function`.

    Returns `None` if its examples are written in a form that cannot be added to, or if it has one
    of the entries.
    """
    added = "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in entries.items())
    if (header := _HEADER.search(text)) is not None:
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
