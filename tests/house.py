"""What the house weighs: `python -m tests.house` prints the figures that `tests/project/test_house.py` limits.

CONTRIBUTING.md has the limits, each with the reason of its last growth; `--update` lowers those that
the house has left behind, and raises none.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.imports import FILES, ROOT

PAGE = ROOT.parent / "CONTRIBUTING.md"
SLACK = 50
"""Lines that a package may grow within its budget: budgets are multiples of this."""
ROW = re.compile(r"^\| `(?P<name>[a-z_]+)` \| (?P<most>[\d ]+) \| (?P<reason>.*) \|$", re.MULTILINE)
"""A row of the table of budgets."""

HOMONYMS = "classes"
ANY = "any"
ONCE = "once"
KINDS = "kinds"


@cache
def _trees() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}


def lines() -> Counter[str]:
    """Return the lines of each package, without modules beside the packages."""
    counts = Counter[str]()
    for file in FILES:
        package, *inside = file.relative_to(ROOT / "jaxsight").parts
        if inside:
            counts[package] += len(file.read_text(encoding="utf-8").splitlines())
    return counts


def homonyms() -> dict[str, list[str]]:
    """Return the public names that several classes have, with their modules."""
    modules: dict[str, list[str]] = {}
    for file, tree in _trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules.setdefault(node.name, []).append(str(file.relative_to(ROOT)))
    return {name: places for name, places in modules.items() if len(places) > 1}


def lines_with_any() -> int:
    """Count the lines that name `Any`, without imports."""
    return sum(
        bool(re.search(r"\bAny\b", line)) and not line.startswith("from typing import")
        for file in FILES
        for line in file.read_text(encoding="utf-8").splitlines()
    )


def string_kinds() -> int:
    """Count the fields and parameters that tell kinds apart by strings that mypy cannot check."""
    return sum(_is_a_string_kind(node) for tree in _trees().values() for node in ast.walk(tree))


def _is_a_string_kind(node: ast.AST) -> bool:
    match node:
        case (
            ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="str"))
            | ast.arg(arg=name, annotation=ast.Name(id="str"))
        ):
            return name in ("kind", "what", "form", "state")
    return False


def used_once() -> tuple[int, int]:
    """Return the number of private functions that their module names once, and of all functions."""
    once = every = 0
    for tree in _trees().values():
        names = Counter(_names(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every += 1
                is_private = node.name.startswith("_") and not node.name.startswith("__")
                once += is_private and names[node.name] == 1
    return once, every


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name


def budgets() -> dict[str, int]:
    """Return the limits that CONTRIBUTING.md has."""
    page = PAGE.read_text(encoding="utf-8")
    return {row["name"]: int(row["most"].replace(" ", "")) for row in ROW.finditer(page)}


def figures() -> dict[str, int]:
    """Return what the limits are about: lines of each package, then the other figures."""
    once, every = used_once()
    return {
        **lines(),
        HOMONYMS: len(homonyms()),
        ANY: lines_with_any(),
        KINDS: string_kinds(),
        ONCE: round(1000 * once / every),
    }


def budget_of(name: str, figure: int) -> int:
    """Return the limit that a figure is given: lines of packages are rounded up."""
    return -(-figure // SLACK) * SLACK if name not in (HOMONYMS, ANY, KINDS, ONCE) else figure


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--update", action="store_true", help="lower the limits to the figures")
    options = parser.parse_args()
    limits, now = budgets(), figures()
    print(f"{'':<14}{'now':>8}{'limit':>8}")
    for name, figure in sorted(now.items(), key=lambda item: -item[1]):
        print(f"{name:<14}{figure:>8}{limits.get(name, 0):>8}")
    print(f"{'all packages':<14}{sum(lines().values()):>8}")
    for name, places in homonyms().items():
        print(f"{name}: {', '.join(places)}")
    if options.update:
        page = PAGE.read_text(encoding="utf-8")

        def lowered(row: re.Match[str]) -> str:
            name, limit = row["name"], limits[row["name"]]
            most = min(limit, budget_of(name, now.get(name, 0)))
            return f"| `{name}` | {most} | {row['reason']} |"

        PAGE.write_text(ROW.sub(lowered, page), encoding="utf-8")


if __name__ == "__main__":
    main()
