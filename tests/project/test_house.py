"""The size of the rooms: few modules in a folder, short modules and functions, no import circle, and a
budget for each package.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.house import SLACK, budget_of, budgets, figures, homonyms
from tests.imports import FILES, ROOT, imports_of, of_modules, reached

MODULES = 14
"""In a folder, besides its `__init__`."""
LINES = 500
"""Of a module."""
LONG = 60
"""Lines of a function that is long."""
LONG_FUNCTIONS = 5
"""In the whole package."""


def circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or through others of the group."""
    from_each = {start: reached(imports, start) for start in imports}
    groups = {
        frozenset(name for name in from_each[start] if start in from_each[name])
        for start in imports
        if start in from_each[start]
    }
    return sorted(map(sorted, groups))


def functions(file: Path) -> Iterator[tuple[int, str]]:
    """The lengths and places of a module's functions."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield length, f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"


def test_no_folder_has_many_modules() -> None:
    folders = Counter(file.parent for file in FILES if file.name != "__init__.py")
    full = {
        str(folder.relative_to(ROOT)): count for folder, count in folders.items() if count > MODULES
    }
    assert not full, f"more than {MODULES} modules in a folder: {full}"


def test_modules_are_short() -> None:
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    long = {str(file.relative_to(ROOT)): n for file, n in lengths.items() if n > LINES}
    assert not long, f"more than {LINES} lines: {long}"


def test_few_functions_are_long() -> None:
    long = sorted(f for file in FILES for f in functions(file) if f[0] > LONG)
    assert len(long) <= LONG_FUNCTIONS, f"more than {LONG} lines: {long}"


def test_no_modules_import_each_other() -> None:
    found = circles(of_modules())
    assert not found, f"modules import each other: {found}"


def test_the_house_keeps_its_budget() -> None:
    limits = budgets()
    grown = {
        name: f"{now} > {limits[name]}" for name, now in figures().items() if now > limits[name]
    }
    assert not grown, (
        f"more than CONTRIBUTING.md allows (python -m tests.house): {grown} {homonyms()}"
    )


def test_budgets_shrink_with_the_house() -> None:
    now = figures()
    assert {*budgets()} == {*now}
    loose = {
        name: f"{limit} for {now[name]}"
        for name, limit in budgets().items()
        if limit > max(1.02 * now[name], budget_of(name, now[name]) + SLACK)
    }
    assert not loose, f"python -m tests.house --update lowers them: {loose}"


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        ("import a.b", {"a.b"}),
        ("from a import b, c", {"a", "a.b"}),
        ("from a.b import c", {"a.b"}),
        ("from . import b", {"a.b"}),
        ("from .b import c", {"a.b"}),
        ("from .. import z", set()),
        ("import z, a.me", set()),
        ("if TYPE_CHECKING:\n    from a.b import c", {"a.b"}),
        ("def f():\n    import a.b", {"a.b"}),
    ],
)
def test_imports_are_found_wherever_they_are(text: str, imported: set[str]) -> None:
    assert imports_of("a.me", text, {"a", "a.b", "a.me"}) == imported


def test_circles_are_found_through_several_modules() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": {"d"}, "f": {"a"}}
    assert circles(imports) == [["a", "b", "c"], ["d", "e"]]
    assert circles({"a": {"b"}, "b": set()}) == []
