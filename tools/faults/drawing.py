"""Draws faults by lot, over all packages of the server, of lines that tests execute."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

from tools.faults.candidates import KINDS, Edit, Fault, edited, edits, is_fault, replaced
from tools.faults.index import Index
from tools.faults.rows import SERVER

LARGE = 500
"""Lines of a package that has at least one fault."""
_ATTEMPTS = 400
"""Modules that are tried for a fault of a package."""


def draw(root: Path, index: Index, seed: int, count: int) -> list[Fault]:
    """Return faults of different lines, in an order that is drawn too.

    Each package has its share by lines, and each kind its share within a package that has it.
    """
    random = Random(seed)
    packages = _packages(root)
    lengths = {name: sum(map(_length, files)) for name, files in packages.items()}
    faults: list[Fault] = []
    kinds: list[str] = []
    for package, number in shares(lengths, count).items():
        files = packages[package]
        weights = [_length(file) for file in files]
        wanted = len(faults) + number
        for file in random.choices(files, weights, k=_ATTEMPTS):
            if len(faults) == wanted:
                break
            if not kinds:  # each of them once, before any of them twice
                kinds = random.sample(KINDS, len(KINDS))
            found = _one(
                file, root, index, random, kinds, {(each.file, each.line) for each in faults}
            )
            if found:
                kinds.remove(found.kind)
                faults.append(found)
    random.shuffle(faults)
    return faults


def shares(lengths: Mapping[str, int], count: int) -> dict[str, int]:
    """Return how many faults each package has: by its lines, and one at least of a large one."""
    given = {name: 1 if length >= LARGE else 0 for name, length in lengths.items()}
    while sum(given.values()) < count:
        name = max(lengths, key=lambda name: lengths[name] / (2 * given[name] + 1))
        given[name] += 1
    return given


def resolved(tree: ast.Module, edit: Edit, executed: set[int]) -> tuple[int, ...]:
    """Return the lines whose tests are those of an edit; empty if tests execute none.

    The edit's line, or that on which its statement begins. Imports alone execute what is outside
    of functions, and these report it for one test at most: the lines of functions of the module
    stand for it that read a name that the statement assigns, or else all of them.
    """
    if edit.function is not None:
        if edit.line in executed or edit.statement.lineno in executed:
            return (edit.line if edit.line in executed else edit.statement.lineno,)
        return _lines([edit.function], executed)
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    names = _assigned(edit.statement)
    readers = {
        node.lineno
        for function in functions
        for node in ast.walk(function)
        if (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Attribute) and node.attr in names)
    }
    return tuple(sorted(readers & executed)) or _lines(functions, executed)


def _one(
    file: Path,
    root: Path,
    index: Index,
    random: Random,
    kinds: Iterable[str],
    taken: set[tuple[str, int]],
) -> Fault | None:
    """Return a fault of a module, of one of the kinds; `None` if it can have none."""
    text = file.read_text(encoding="utf-8")
    path = file.relative_to(root).as_posix()
    tree = ast.parse(text)
    executed = index.executed(path)
    lines = text.split("\n")
    found = [*edits(tree, [line.encode() for line in lines])] if executed else []
    for kind in kinds:
        of_kind = [edit for edit in found if edit.kind == kind and (path, edit.line) not in taken]
        random.shuffle(of_kind)
        for edit in of_kind[:20]:
            before, after = lines[edit.line - 1], edited(text, edit)
            at = resolved(tree, edit, executed)
            if at and is_fault(text, replaced(text, edit.line, before, after), kind):
                return Fault(path, edit.line, kind, before, after, at)
    return None


def _packages(root: Path) -> dict[str, list[Path]]:
    """Return the modules of each package; single modules are one package together."""
    packages: dict[str, list[Path]] = {}
    for file in sorted((root / SERVER).rglob("*.py")):
        inner = file.relative_to(root / SERVER).parts
        packages.setdefault(inner[0] if len(inner) > 1 else "", []).append(file)
    return packages


def _length(file: Path) -> int:
    return sum(1 for line in file.read_text(encoding="utf-8").splitlines() if _is_code(line))


def _is_code(line: str) -> bool:
    return re.match(r"\s*[^\s#]", line) is not None


def _assigned(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Assign(targets=targets):
            return {
                node.id
                for target in targets
                for node in ast.walk(target)
                if isinstance(node, ast.Name)
            }
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def _lines(nodes: Iterable[ast.AST], executed: set[int]) -> tuple[int, ...]:
    """Return the executed lines of the bodies of functions."""
    return tuple(
        sorted(
            {
                line
                for node in nodes
                for first in [node.body[0] if isinstance(node.body, list) else node.body]  # type: ignore[attr-defined]
                for line in range(first.lineno, node.end_lineno + 1)  # type: ignore[attr-defined]
                if line in executed
            }
        )
    )
