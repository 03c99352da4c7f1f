"""Text reaches people in few places, each of which makes it inert: nothing else prints or
sends."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "server" / "jaxsight"

PRINTS = {"cli/output/printing.py", "settings/documentation.py", "lsp/server.py"}
"""The second writes our own documentation, the last the address that it listens on."""
ONLY_THERE = {
    "ShowMessageParams": {"lsp/context.py"},
    "ShowMessageRequestParams": {
        "lsp/context.py",
        "lsp/features/runs/repros.py",
        "lsp/notifications/event_pump.py",
    },
    "LogMessageParams": {"lsp/context.py"},
    "MarkupContent": {"lsp/convert.py"},
    "InlayHint": {"lsp/convert.py"},
    "CompletionItem": {"lsp/convert.py"},
    "Diagnostic": {"lsp/features/diagnostics.py"},
    "WorkDoneProgressBegin": {"lsp/notifications/progress.py"},
    "WorkDoneProgressReport": {"lsp/notifications/progress.py"},
    "WorkDoneProgressEnd": {"lsp/notifications/progress.py"},
}
"""Where what people read is made, in a function that makes it inert."""


def calls(module: Path) -> Iterator[str]:
    """The last names of what a module calls."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(name)):
                yield name


MODULES = {
    module.relative_to(PACKAGE).as_posix(): module
    for folder in ("cli", "features", "lsp", "projects", "queries", "settings", "workers")
    for module in sorted((PACKAGE / folder).rglob("*.py"))
}


@pytest.mark.parametrize("name", MODULES)
def test_what_people_read_is_made_in_few_places(name: str) -> None:
    called = set(calls(MODULES[name]))
    if name not in PRINTS:
        assert not called & {"print_exc", "echo", "secho", "Console", "from_markup"}
        tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
        prints = (each for each in ast.walk(tree) if isinstance(each, ast.Call))
        assert not [each.lineno for each in prints if getattr(each.func, "id", "") == "print"]
        assert not {each for each in imported(MODULES[name]) if each.startswith("rich")} - {
            "rich.cells"
        }
    if name == "lsp/start/warmup.py":  # makes one of each before anybody asks, and sends none
        return
    for made, places in ONLY_THERE.items():
        assert made not in called or name in places, f"{name} makes a {made}"
