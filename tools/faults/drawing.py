"""Draws faults by lot, over all packages of the server, of lines that tests execute."""

from __future__ import annotations

import ast
import re
from collections import Counter
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

    Each package has its share by lines of code. Kinds have theirs of all faults, as far as the
    modules that are drawn can have them.
    """
    random = Random(seed)
    packages = {
        name: {file: _length(file) for file in files}
        for name, all_files in _packages(root).items()
        if (files := [file for file in all_files if _is_executed(file, root, index)])
    }
    lengths = {name: sum(files.values()) for name, files in packages.items()}
    faults: list[Fault] = []
    for package, number in shares(lengths, count).items():
        modules = packages[package]
        wanted = len(faults) + number
        for file in random.choices([*modules], [*modules.values()], k=_ATTEMPTS):
            if len(faults) == wanted:
                break
            drawn = Counter(fault.kind for fault in faults)
            kinds = sorted(KINDS, key=lambda kind: (drawn[kind] / KINDS[kind], random.random()))
            if fault := _one(file, root, index, random, kinds, faults):
                faults.append(fault)
    random.shuffle(faults)
    return faults


def shares(lengths: Mapping[str, int], count: int) -> dict[str, int]:
    """Return how many faults each package has: by its lines, and one at least of a large one."""
    given = {name: 1 if length >= LARGE else 0 for name, length in lengths.items()}
    while lengths and sum(given.values()) < count:
        name = max(lengths, key=lambda name: lengths[name] / (2 * given[name] + 1))
        given[name] += 1
    return given


def resolved(tree: ast.Module, edit: Edit, executed: Mapping[int, bool]) -> tuple[int, ...]:
    """Return the lines whose tests are those of an edit; empty if tests execute none.

    The edit's line, or that on which its statement begins. Where imports alone execute it, the
    lines of its function, as for defaults of its parameters. Imports alone execute what is outside
    of functions, which they report for one test at most: the lines of functions of the module
    stand for it that read a name that the statement assigns, or else all of them.

    Args:
        tree: the module.
        edit: the edit of one of its lines.
        executed: the lines that were executed, with whether tests execute them.
    """
    if edit.function is not None:
        if edit.line < _first(edit.function):
            return _lines([edit.function], executed)
        for line in (edit.line, edit.statement.lineno):
            if line in executed:
                return (line,) if executed[line] else _lines([edit.function], executed)
        return ()
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
    lines = tuple(sorted(line for line in readers if executed.get(line)))
    return lines or _lines(functions, executed)


def _one(
    file: Path,
    root: Path,
    index: Index,
    random: Random,
    kinds: Iterable[str],
    others: Iterable[Fault],
) -> Fault | None:
    """Return a fault of a module, of the first kind that it can have; `None` if there is none."""
    path = file.relative_to(root).as_posix()
    executed, text = index.executed(path), file.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.split("\n")
    taken = {fault.line for fault in others if fault.file == path}
    found = [*edits(tree, [line.encode() for line in lines])]
    for kind in kinds:
        of_kind = [edit for edit in found if edit.kind == kind and edit.line not in taken]
        for edit in random.sample(of_kind, len(of_kind)):
            before, after = lines[edit.line - 1], edited(text, edit)
            at = resolved(tree, edit, executed)
            if at and is_fault(text, replaced(text, edit.line, before, after), kind):
                return Fault(path, edit.line, kind, before, after, at)
    return None


def _is_executed(file: Path, root: Path, index: Index) -> bool:
    """Return whether tests execute a file, as it is now."""
    path = file.relative_to(root).as_posix()
    return index.is_of(path, file.read_text(encoding="utf-8")) and any(
        index.executed(path).values()
    )


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


def _lines(functions: Iterable[ast.AST], executed: Mapping[int, bool]) -> tuple[int, ...]:
    """Return the lines of the bodies of functions that tests execute."""
    bodies = [range(_first(node), _last(node) + 1) for node in functions]
    return tuple(sorted({line for body in bodies for line in body if executed.get(line)}))


def _first(function: ast.AST) -> int:
    body: list[ast.stmt] | ast.expr = function.body  # type: ignore[attr-defined]
    return (body[0] if isinstance(body, list) else body).lineno


def _last(function: ast.AST) -> int:
    return function.end_lineno  # type: ignore[attr-defined, no-any-return]
