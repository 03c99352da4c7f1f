"""The text of JAX's bug report form for a repro, with the tables of its explanation.

Whatever comes from the program (its source, its messages) stays inside fences and code spans that
it cannot end.
"""

from __future__ import annotations

import re
import shlex
from pathlib import PurePath

from jaxsight.repro.explanation import Explanation, Table, Verdict
from jaxsight.repro.failures import EXCEPTION, LONGEST_MESSAGE, RunFailure

_SYSTEM = "System info (python version, jaxlib version, accelerator, etc.)"
_NODE = re.compile(r"node='[^']*'")
"""The machine's name in what `jax.print_environment_info()` prints."""

_ATTACHED = "It reads arrays from the attached `.npz` file, which has its name."
_SHOWN = (Verdict.PASSES, Verdict.OTHER, Verdict.DIVERGES, Verdict.AGREES)


def issue_text(
    repro_text: str, failure: RunFailure, environment: str, explanation: Explanation | None
) -> str:
    """Return a bug report as Markdown, with the headings of JAX's form.

    Args:
        environment: what `jax.print_environment_info()` prints.
        explanation: the tables to include, if there are any.
    """
    message = failure.headline
    if failure.kind == EXCEPTION and failure.name and failure.message:
        message = f"{failure.name}: {failure.message}"
    parts = [
        "### Description",
        _summary(failure),
        fenced(repro_text.strip("\n"), "python"),
        *([_ATTACHED] if ".npz" in repro_text else []),
        "It fails with:",
        fenced(
            message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}\n[...]"
        ),
    ]
    if explanation is not None:
        parts += [f"Note: {note}." for note in explanation.notes]
        for table in explanation.tables:
            parts += _table(table)
    parts += [f"### {_SYSTEM}", fenced(_NODE.sub("node='...'", environment.strip()))]
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str = "") -> str:
    """Return text in a fence that is longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + _longest_run(text))
    return f"{fence}{language}\n{text}\n{fence}"


def code(text: str) -> str:
    """Return text as a code span on one line, for a cell of a table or for prose."""
    line = " ".join(text.split()).replace("|", r"\|")
    ticks = "`" * (1 + _longest_run(line))
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _summary(failure: RunFailure) -> str:
    match failure.kind:
        case "crash":
            return f"This program is {failure.headline}:"
        case "hang":
            return "This program does not finish:"
        case "memory":
            return "This program exceeds its memory limit:"
        case "exception" if failure.name == "AssertionError":
            return f"This program computes something wrong ({code(failure.headline)}):"
        case _:
            return f"This program raises {code(failure.name or 'an exception')}:"


def _table(table: Table) -> list[str]:
    """Return the parts of a table; what just fails is listed below it."""
    if not table.rows and not table.conclusion:
        return [f"**{table.title}**: {'; '.join(table.notes)}"] if table.notes else []
    head = f"**{table.title}**: {table.conclusion}." if table.conclusion else f"**{table.title}**"
    parts = [head]
    shown = [row for row in table.rows if row.verdict in _SHOWN]
    if shown:
        lines = ["| | | |", "| - | - | - |"]
        for row in shown:
            details = [row.detail, public(row.command) if row.command else ""]
            cell = " ".join(map(code, filter(None, details)))
            lines.append(f"| {row.verdict} | {code(row.subject)} | {cell} |")
        parts.append("\n".join(lines))
    if failing := [code(row.subject) for row in table.rows if row.verdict is Verdict.FAILS]:
        parts.append(f"Fails in the same way: {', '.join(failing)}")
    untried = [row for row in table.rows if row.verdict == Verdict.UNTRIED]
    if untried:
        reasons = "; ".join(f"{code(row.subject)} ({code(row.detail)})" for row in untried)
        parts.append(f"Not tried: {reasons}")
    if table.notes:
        parts.append("Note: " + "; ".join(table.notes))
    return parts


def public(command: str) -> str:
    """Return a command without the folders of its interpreter and its file."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    shown = []
    for word in words:
        name, equals, value = word.partition("=")
        path = PurePath(word)
        if equals and name.isupper():
            shown.append(f"{name}={shlex.quote(value)}")
        elif path.is_absolute() and path.name.startswith("python"):
            shown.append("python")
        else:
            shown.append(shlex.quote(path.name if path.is_absolute() else word))
    return " ".join(shown)
