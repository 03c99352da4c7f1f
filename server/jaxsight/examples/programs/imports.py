"""The modules that a text imports, and the files that these may be.

They are read with one pattern, without a parse: a project has many files, and few of them matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>\.*[\w.]*)[ \t]+import[ \t]*"
    r"(?P<names>\((?:[^()#]|#[^\n]*){0,2000}\)|[^\n;#]+)|import[ \t]+(?P<modules>[^\n;#]+))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")
_ALIASED = re.compile(r"\s*(?P<name>[\w.]+|\*)(?:\s+as\s+(?P<alias>\w+))?\s*")
_MOST = 300
"""Imported names of a text that are considered, a choice: lists of more are generated."""


@dataclass(frozen=True, slots=True)
class TextImport:
    """A module or a name of one that a text imports."""

    module: str
    """Its dotted name, with the dots of a relative import."""
    name: str
    """The name that is imported from the module; empty for the module itself."""
    bound: str
    """The name by which the text knows it; `*` for all names of the module."""


def imports_in(text: str) -> tuple[TextImport, ...]:
    """Return what a text imports, anywhere in it."""
    if "import" not in text:
        return ()
    found: list[TextImport] = []
    for match in _IMPORT.finditer(text):
        module = match["module"]
        listed = _COMMENT.sub("", match["names"] or match["modules"]).strip("()\\ \t\n")
        for part in listed.split(","):
            aliased = _ALIASED.fullmatch(part)
            if aliased is None:
                continue
            name, alias = aliased["name"], aliased["alias"]
            origin = (name, "") if module is None else (module, name)
            found.append(TextImport(*origin, alias or name))
        if len(found) >= _MOST:
            break
    return tuple(found[:_MOST])


def places_of(imported: TextImport, importer: str, folders: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths, without `.py`, at which an imported module may be.

    That of the name comes first, which may be a module of a package.

    Args:
        imported: what is imported.
        importer: the path of the file that imports it.
        folders: where absolute imports are looked for.
    """
    dots = len(imported.module) - len(imported.module.lstrip("."))
    parts = [part for part in imported.module[dots:].split(".") if part]
    if dots:
        above = PurePath(importer).parents
        folders = (str(above[dots - 1]),) if dots <= len(above) else ()
    for folder in folders:
        if imported.name not in ("", "*"):
            yield str(PurePath(folder, *parts, imported.name))
        if parts or dots:
            yield str(PurePath(folder, *parts))
