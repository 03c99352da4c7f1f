"""Text reaches people in few places, each of which makes it inert: nothing else prints or sends."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.lint.checkout import Checkout, Module, Offender, inside

FOLDERS = frozenset({"cli", "features", "lsp", "projects", "queries", "settings", "workers"})
PRINTS = frozenset({"cli/output/printing.py", "settings/documentation.py", "lsp/server.py"})
"""The second writes our own documentation, the last the address that it listens on."""
PRINTING = frozenset({"print_exc", "echo", "secho", "Console", "from_markup"})
ONLY_THERE = {
    "ShowMessageParams": {"lsp/context.py"},
    "ShowMessageRequestParams": {
        "lsp/context.py",
        "lsp/event_pump.py",
    },
    "LogMessageParams": {"lsp/context.py"},
    "MarkupContent": {"lsp/convert.py"},
    "InlayHint": {"lsp/convert.py"},
    "CompletionItem": {"lsp/convert.py"},
    "Diagnostic": {"lsp/features/diagnostics.py"},
    "WorkDoneProgressBegin": {"lsp/progress.py"},
    "WorkDoneProgressReport": {"lsp/progress.py"},
    "WorkDoneProgressEnd": {"lsp/progress.py"},
}
"""Where what people read is made, in a function that makes it inert."""


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield what prints, and what makes a message, anywhere else."""
    for module in checkout.modules:
        if inside(module.path).partition("/")[0] in FOLDERS:
            yield from _of_module(module)


def _of_module(module: Module) -> Iterator[Offender]:
    name = inside(module.path)
    for call in module.nodes(ast.Call):
        match call.func:
            case ast.Name(id=called) | ast.Attribute(attr=called):
                pass
            case _:
                continue
        is_print = called in PRINTING or (called == "print" and isinstance(call.func, ast.Name))
        if is_print and name not in PRINTS:
            message = f"calls `{called}`; print with `cli/output/printing.py`"
            yield Offender(module.path, call.lineno, message)
        places = ONLY_THERE.get(called, {name})
        if name not in places:
            message = f"makes a `{called}`, as only {', '.join(sorted(places))} may"
            yield Offender(module.path, call.lineno, message)
    for line, imported in module.imports():
        if (
            name not in PRINTS
            and f"{imported}.".startswith("rich.")
            and not f"{imported}.".startswith("rich.cells.")
        ):
            yield Offender(module.path, line, f"imports `{imported}`, which prints")
