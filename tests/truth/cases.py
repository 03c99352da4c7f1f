"""The cases: small modules, by family, as they stand in `tests/corpora/truth/modules/<family>.txt`.

A file has many cases, each of them a few files of a project:

    === name [alone]
    --- helper.py
    ...
    --- main.py
    ...
    --- edit main.py
    ...

The last file before any edit is the one whose functions are asked about. `--- edit FILE` gives a
later text of a file, in the order in which they are typed or saved. `alone` has the case measured
in a session of its own whose root is the case's folder: for modules that read files below the
working directory.

A line that ends with `# <-` is the effect that the case is about: without its statement the truth
is another one, which `python -m tests.truth --check` verifies. The mark is not in the text that is
measured.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "corpora" / "truth" / "modules"

_CASE = re.compile(r"^=== (?P<name>[\w-]+)(?P<flags>(?: \w+)*)\n", re.MULTILINE)
_FILE = re.compile(r"^--- (?P<edit>edit )?(?P<path>\S+)\n", re.MULTILINE)
_MARK = re.compile(r"[ \t]*# <-$", re.MULTILINE)
FLAGS = {"alone"}


@dataclass(frozen=True, slots=True)
class Case:
    """One module with the files that it needs, by their paths below the case's folder."""

    family: str
    name: str
    files: tuple[tuple[str, str], ...]
    main: str
    edits: tuple[tuple[str, str], ...] = ()
    alone: bool = False
    without: tuple[tuple[str, str], ...] | None = None
    """The files without the marked statements; nothing where none is marked."""

    @property
    def text(self) -> str:
        """The main file."""
        return dict(self.files)[self.main]


def cases(family: str = "", name: str = "") -> list[Case]:
    """All cases, or those of a family or a name."""
    return [
        case
        for path in sorted(FOLDER.glob("*.txt"))
        if not family or path.stem == family
        for case in parse(path.stem, path.read_text(encoding="utf-8"))
        if not name or case.name == name
    ]


def families() -> list[str]:
    return [path.stem for path in sorted(FOLDER.glob("*.txt"))]


def parse(family: str, text: str) -> Iterator[Case]:
    """The cases in the text of a family's file."""
    heads = list(_CASE.finditer(text))
    for head, end in zip(heads, [*(h.start() for h in heads[1:]), len(text)], strict=True):
        flags = set(head["flags"].split())
        if unknown := flags - FLAGS:
            raise ValueError(f"{family}: case {head['name']} has unknown flags {unknown}")
        yield _case(family, head["name"], text[head.end() : end], flags)


def _case(family: str, name: str, text: str, flags: set[str]) -> Case:
    heads = list(_FILE.finditer(text))
    marked: dict[str, str] = {}
    edits: list[tuple[str, str]] = []
    for head, end in zip(heads, [*(h.start() for h in heads[1:]), len(text)], strict=True):
        content = text[head.end() : end].rstrip("\n") + "\n"
        if head["edit"]:
            edits.append((head["path"], _MARK.sub("", content)))
        else:
            marked[head["path"]] = content
    if not marked:
        raise ValueError(f"{family}: case {name} has no file")
    files = tuple((path, _MARK.sub("", content)) for path, content in marked.items())
    without = None
    if any(_MARK.search(content) for content in marked.values()):
        without = tuple((path, _without_marked(path, content)) for path, content in marked.items())
    main = list(marked)[-1]
    return Case(family, name, files, main, tuple(edits), "alone" in flags, without)


def _without_marked(path: str, content: str) -> str:
    """A text whose marked statements are replaced by `pass`; marked lines of other files are
    deleted.
    """
    lines = content.split("\n")
    marked = {number for number, line in enumerate(lines, 1) if _MARK.search(line)}
    if not marked:
        return content
    if not path.endswith(".py"):
        return "\n".join(line for number, line in enumerate(lines, 1) if number not in marked)
    replaced: dict[int, str] = {}
    deleted: set[int] = set()
    nodes = list(ast.walk(ast.parse(content)))
    for number in marked:
        starting = [n for n in nodes if isinstance(n, ast.stmt) and _first_line(n) == number]
        if lines[number - 1].lstrip().startswith("@") or not starting:
            deleted.add(number)
            continue
        node = starting[0]
        deleted |= set(range(number, (node.end_lineno or number) + 1))
        replaced[number] = " " * node.col_offset + "pass"
    kept = [
        replaced.get(number, line)
        for number, line in enumerate(lines, 1)
        if number not in deleted or number in replaced
    ]
    return _MARK.sub("", "\n".join(kept))


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])
