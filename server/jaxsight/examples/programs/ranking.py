"""The programs that may call a file's functions, the most telling ones first.

A file's own programs come first, then those of the files that import it, the nearest ones first:
tests, as they call functions with small arguments that they make themselves; scripts; notebooks and
documents; then whatever else imports it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import PurePath

from jaxsight.examples.programs.entries import entries_in
from jaxsight.text.magics import notebook_text
from jaxsight.wire.messages.inputs import EntryPoint, InputCall

# Python in other texts: the cells of notebooks, the code blocks of Markdown, doctests.
#
# All other lines become empty where a text has lines, so that a line of the program is that line of
# the text.

_FENCE = re.compile(r"[ \t]{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)[^\n]*")
_PYTHON = frozenset({"python", "py", "python3", "pycon"})
_PROMPT = re.compile(r"[ \t]*(?:>>>|\.\.\.)(?: (?P<code>.*))?")


def code_of_notebook(text: str) -> str:
    """Return the Python cells of a Jupyter notebook, without magics; empty if it has none.

    The editor's text of a notebook has them already.
    """
    return notebook_text(text) if text.lstrip().startswith("{") else text


def code_of_markdown(text: str) -> str:
    """Return the Python code blocks of a Markdown text; empty if it has none."""
    lines: list[str] = []
    fence, is_python = "", False
    for line in text.splitlines():
        mark = _FENCE.fullmatch(line)
        if fence and line.strip() and line.strip() == fence[0] * len(line.strip()):
            closes = len(line.strip()) >= len(fence)
            fence, is_python = ("", False) if closes else (fence, is_python)
            lines.append("")
        elif not fence and mark is not None:
            fence, is_python = mark["fence"], mark["language"].lower() in _PYTHON
            lines.append("")
        else:
            lines.append(line if fence and is_python else "")
    code = "\n".join(lines).rstrip()
    return code_of_doctests(code) if ">>>" in code else code


def code_of_doctests(text: str) -> str:
    """Return the statements of the doctests in a text; empty if it has none."""
    if ">>>" not in text:
        return ""
    lines: list[str] = []
    goes_on = False
    for line in text.splitlines():
        prompt = _PROMPT.fullmatch(line)
        goes_on = prompt is not None and (goes_on or line.lstrip().startswith(">>>"))
        lines.append((prompt["code"] or "") if goes_on and prompt is not None else "")
    return "\n".join(lines).rstrip()


# The modules that a text imports, and the files that these may be.
#
# They are read with one pattern, without a parse: a project has many files, and few of them matter.

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
            if (aliased := _ALIASED.fullmatch(part)) is None:
                continue
            name, alias = aliased["name"], aliased["alias"]
            origin = (name, "") if module is None else (module, name)
            found.append(TextImport(*origin, alias or name))
        if len(found) >= _MOST:
            break
    return tuple(found[:_MOST])


def paths_of(imported: TextImport, importer: str, folders: tuple[str, ...]) -> Iterator[str]:
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


MOST = 12
"""Programs of a file that are run, a choice: each may take seconds (`_PATIENCE` of dry runs)."""
_MOST_OF_ONE = 6
"""Programs of one file among them, so that others are run, too."""
_OWN_TESTS = 128
"""Tests of the file itself that are run, a choice: they are what it shows."""
_TOGETHER = 8
"""Tests that one program calls, a choice: beginning one takes longer than most tests."""
FARTHEST = 3
"""Imports between a program's file and that of the functions, a choice: from farther, few call."""
_TEST = re.compile(r"test_.*|.*_tests?")
_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_SCRIPTS = frozenset({"main", "__main__", "train", "run", "eval", "demo", "example"})


class _Kind(IntEnum):
    """What an importer is; the lower ones are run first."""

    OWN_TEST = 0
    TEST = 1
    SCRIPT = 2
    NOTEBOOK = 3
    DOCUMENT = 4
    OTHER = 5


@dataclass(frozen=True, slots=True)
class Importer:
    """A file that imports another one, directly or through others."""

    path: str
    distance: int
    imports: tuple[TextImport, ...]
    """What it imports of the file, or of the one between them."""

    def kind_for(self, path: str) -> _Kind:
        """Return what it is for a file whose functions are looked for."""
        file, stem = PurePath(self.path), PurePath(path).stem
        if file.suffix == ".ipynb":
            return _Kind.NOTEBOOK
        if file.suffix != ".py":
            return _Kind.DOCUMENT
        if file.stem in (f"{stem}_test", f"test_{stem}"):
            return _Kind.OWN_TEST
        if _TEST.fullmatch(file.stem) or not _TEST_FOLDERS.isdisjoint(file.parts[-3:-1]):
            return _Kind.TEST
        return _Kind.SCRIPT if file.stem in _SCRIPTS else _Kind.OTHER


def importers_of(
    path: str, imported_by: Mapping[str, Mapping[str, tuple[TextImport, ...]]]
) -> tuple[Importer, ...]:
    """Return the files that import a file, the nearest and most telling ones first.

    Args:
        path: the file.
        imported_by: by file, the files that import it, with what they import.
    """
    found: dict[str, Importer] = {}
    nearest = [path]
    for distance in range(1, FARTHEST + 1):
        farther: list[str] = []
        for between in nearest:
            for importer, imports in imported_by.get(between, {}).items():
                if importer != path and importer not in found:
                    found[importer] = Importer(importer, distance, imports)
                    farther.append(importer)
        nearest = farther
    return tuple(sorted(found.values(), key=lambda i: (i.distance, i.kind_for(path), i.path)))


def programs(
    path: str,
    text: str,
    importers: tuple[Importer, ...],
    read: Callable[[str], str],
    module_of: Callable[[str], str],
    given_of: Callable[[str, str], tuple[InputCall, ...]],
) -> tuple[EntryPoint, ...]:
    """Return the programs that may call functions of a file, at most `MOST`.

    Args:
        path: the file.
        text: its text.
        importers: the files that import it, in order.
        read: returns the text of a file; empty if it cannot be read.
        module_of: returns the dotted name of a file's module.
        given_of: returns the functions of a file that have example inputs, given its text.
    """
    found = _own(path, text, module_of(path))
    found += _given(path, module_of(path), given_of(path, text))
    most = max(MOST, len(found))
    for importer in importers:
        if len(found) >= most:
            break
        written = read(importer.path)
        given = given_of(importer.path, written)
        found += _given(importer.path, module_of(importer.path), given)
        found += _of_importer(importer, importer.kind_for(path), written, module_of)
    return tuple(found[:most])


def _given(path: str, module: str, given: tuple[InputCall, ...]) -> Iterator[EntryPoint]:
    """Yield the program that calls a file's functions with their example inputs."""
    if given:
        yield EntryPoint(path, module, given=given)


def _own(path: str, text: str, module: str) -> list[EntryPoint]:
    """Return the programs in the file itself."""
    entries = entries_in(text)
    names = (*(() if entries.guarded else entries.mains), *entries.others)
    found = [EntryPoint(path, module)] if entries.acts and not entries.tests else []
    tests = _together(entries.tests[:_OWN_TESTS])
    found += [EntryPoint(path, module, name) for name in (*tests, *names[:_MOST_OF_ONE])]
    if doctests := code_of_doctests(text):
        found.append(_written(path, module, doctests))
    return found


def _together(tests: tuple[str, ...]) -> list[str]:
    """Return tests as programs of several."""
    firsts = range(0, len(tests), _TOGETHER)
    return [" ".join(tests[first : first + _TOGETHER]) for first in firsts]


def _of_importer(
    importer: Importer, kind: _Kind, text: str, module_of: Callable[[str], str]
) -> list[EntryPoint]:
    path = importer.path
    if kind is _Kind.NOTEBOOK:
        code = code_of_notebook(text)
        return [EntryPoint(path, PurePath(path).stem, text=code)] if code.strip() else []
    if kind is _Kind.DOCUMENT:
        code = code_of_markdown(text)
        return [_written(path, PurePath(path).stem, code)] if code else []
    bound = frozenset(i.bound.partition(".")[0] for i in importer.imports)
    entries = entries_in(text, bound)
    mains = () if entries.guarded else entries.mains
    names = [*_together(entries.tests), *mains, *entries.others]
    found = [EntryPoint(path, module_of(path), name) for name in names[:_MOST_OF_ONE]]
    if entries.acts and not entries.tests:
        found.insert(0, EntryPoint(path, module_of(path)))
    if not found and (doctests := code_of_doctests(text)):
        found.append(_written(path, module_of(path), doctests))
    return found


def _written(path: str, module: str, text: str) -> EntryPoint:
    """Return a program in a text, without the empty lines above it."""
    lines = text.split("\n")
    above = next((n for n, written in enumerate(lines) if written.strip()), 0)
    return EntryPoint(path, module, text="\n".join(lines[above:]) + "\n", line=above)
