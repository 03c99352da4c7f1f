"""Findings as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.cli.output.reports.reported import (
    ExaminedFile,
    Reported,
    in_cell,
    misses,
    origins,
    totals,
)
from jaxsight.cli.output.reports.text import short_path
from jaxsight.rules.finding import Severity
from jaxsight.text.markdown import commented, span, table_cell
from jaxsight.text.units import count

MOST_FINDINGS = 50
"""Findings in a comment, a choice: GitHub takes 65,536 characters, people read less."""
MARKS = {
    Severity.ERROR: "❌",
    Severity.WARNING: "⚠️",
    Severity.INFORMATION: "ℹ️",
    Severity.HINT: "ℹ️",
}


def as_markdown(reported: Sequence[Reported], examined: Sequence[ExaminedFile]) -> str:
    """Return a heading, a table of the findings, worst first, and what was examined."""
    ranks = list(MARKS)
    ordered = sorted(reported, key=lambda each: ranks.index(each.finding.severity))
    fails = any(each.finding.severity in ranks[:2] for each in reported)
    mark = "❌" if fails else "✅" if origins(examined) else "⚠️"
    found = count(len(reported), "finding") if reported else "no findings"
    lines = [f"### {mark} jaxsight check: {found}", ""]
    if ordered:
        lines += ["| | rule | line | finding |", "|---|---|---|---|"]
        for each in ordered[:MOST_FINDINGS]:
            finding = each.finding
            rule = f"[{finding.code}]({finding.url})" if finding.url else finding.code
            place = f"{short_path(each.path)}:{each.cells.place(finding.range.start.line)}"
            first, *more = finding.lines
            words = [in_cell(each.cells, finding.range.start.line, first), *more]
            shown = "<br>".join(map(commented, words))
            cells = (MARKS[finding.severity], rule, span(place), shown)
            lines.append(f"| {' | '.join(map(table_cell, cells))} |")
        if len(ordered) > MOST_FINDINGS:
            lines.append(f"| | | | and {len(ordered) - MOST_FINDINGS} more |")
        lines.append("")
    lines.append("; ".join(filter(None, (totals(examined), misses(examined)))))
    return "\n".join(lines) + "\n"
