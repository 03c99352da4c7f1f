"""Names of example sets from dry runs: who calls the function, and where."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePath

from jaxsight.queries.documents import Document
from jaxsight.source.text import Position
from jaxsight.text.inert import clause
from jaxsight.wire.messages.inputs import EntryPoint
from jaxsight.wire.messages.replies import CallSeen

_LONGEST = 60
"""Characters of a name or a condition, a choice: it is part of a lens."""


def label(document: Document, call: CallSeen, entry: EntryPoint) -> str:
    """Return the name of an example set, such as `as called in train_test.py:31`.

    In the document itself the function that calls is named: edits would change a line.
    """
    condition = f" if {clause(call.condition, _LONGEST)}" if call.condition else ""
    return f"{_caller(document, call, entry)}{condition}"


def _caller(document: Document, call: CallSeen, entry: EntryPoint) -> str:
    file = clause(PurePath(call.file or entry.file).name, _LONGEST)
    if call.file != document.path:
        is_notebook = PurePath(file).suffix == ".ipynb"
        line = "" if is_notebook or call.line <= 0 else f":{call.line}"
        return f"as called in {file}{line}"
    first = document.line_of(call.chunk) if call.chunk else 1
    row = max((first or 1) + call.line - 2, 0)
    around = document.module.function_at(Position(row, 0))
    if around is not None and around[1].qualname != call.function:
        return f"as called by `{clause(around[1].qualname.rpartition('<locals>.')[2], _LONGEST)}`"
    if entry.file != document.path:
        return f"as called in a run of {clause(PurePath(entry.file).name, _LONGEST)}"
    if entry.text:
        return "as called in a dry run"
    lines = document.module.text.split("\n")
    called = lines[row].strip() if call.line > 0 and row < len(lines) else ""
    return f"as in `{clause(called, _LONGEST)}`" if called else "as called in this file"


def compiled_as(compiled: str, others: Collection[str], *, has_parts: bool) -> str:
    """Return `OutsideSet.compiled` of a call, given what all calls in its program are.

    Parts of a program without a function of its own, such as the body of a `scan`, are inside of
    it; they are compiled alone if no call in the file is known to start one (`has_parts`).
    """
    if compiled == "eager" and {*others} <= {"eager", ""}:
        return "only eager"
    return compiled.replace("part", "inside" if has_parts else "")


def run_label(document: Document, entry: EntryPoint) -> str:
    """Return the name of the example set of a function that is itself part of a program."""
    if entry.file == document.path:
        return "as in a run of this file"
    return f"as in a run of {clause(PurePath(entry.file).name, _LONGEST)}"
