"""Fixtures as source: hints between ⟦ ⟧ where an editor draws them, findings under `^^^` marks, the
cursor as `$0`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxsight.features.model import Hint
from jaxsight.rules.finding import Finding, Severity
from jaxsight.source.text import Position

_HINT = re.compile(r"⟦[^⟧]*⟧")
_MARKS = re.compile(r"^ *#? *(\^+|\| (help|note):) .*\n", re.MULTILINE)
CURSOR = "$0"


def without_hints(text: str) -> str:
    """The source as the user wrote it."""
    return _HINT.sub("", text)


def with_hints(source: str, hints: Sequence[Hint]) -> str:
    """The source with every hint drawn at the end of its range."""
    lines = source.splitlines(keepends=True)
    for hint in sorted(hints, key=lambda h: h.range.end, reverse=True):
        end = hint.range.end
        line = lines[end.line]
        label = f"⟦{hint.label}⟧"
        lines[end.line] = line[: end.column] + label + line[end.column :]
    return "".join(lines)


def without_marks(text: str) -> str:
    """The source without the lines that mark findings."""
    return _MARKS.sub("", text)


def with_marks(source: str, findings: Sequence[Finding]) -> str:
    """Write findings in comments under the lines that they begin on.

    A finding is `#   ^^^ CODE message`, with the severity where it is no error, and below it
    `#   | help: …` and `#   | note: …`.
    """
    lines = source.splitlines(keepends=True)
    for finding in sorted(findings, key=lambda f: f.range, reverse=True):
        start, end = finding.range.start, finding.range.end
        length = max(1, end.column - start.column) if end.line == start.line else 3
        first, *more = "\n".join(finding.lines).splitlines()
        details = [line for line in more if line.startswith(("help:", "note:"))]
        code = finding.code
        if finding.severity is not Severity.ERROR:
            code += f" ({finding.severity.value})"
        indent = "#".ljust(start.column)
        cut = " …" if len(details) < len(more) else ""
        shown = f"{indent}{'^' * length} {code} {first}{cut}\n"
        shown += "".join(f"{indent}| {line}\n" for line in details)
        lines.insert(start.line + 1, shown)
    return "".join(lines)


def cursor(text: str) -> tuple[str, Position]:
    """The source without `$0`, and where it stood."""
    before, found, after = text.partition(CURSOR)
    assert found, "the fixture has no $0"
    line = before.count("\n")
    return before + after, Position(line, len(before) - (before.rfind("\n") + 1))
