"""Findings as a report of GitLab's Code Quality (https://docs.gitlab.com/ci/testing/code_quality/)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jaxsight.cli.output.reports.fingerprints import fingerprints, in_project
from jaxsight.cli.output.reports.reported import Reported, in_cell
from jaxsight.cli.output.reports.text import short_path
from jaxsight.rules.finding import Severity
from jaxsight.text.inert import visible

GITLAB_SEVERITIES = {
    Severity.ERROR: "major",
    Severity.WARNING: "minor",
    Severity.INFORMATION: "info",
    Severity.HINT: "info",
}


def as_gitlab(reported: Sequence[Reported]) -> list[dict[str, object]]:
    """Return the list of issues; GitLab shows one of those with equal fingerprints."""
    return [
        {
            "description": visible(
                in_cell(each.cells, each.finding.range.start.line, " · ".join(each.finding.lines))
            ),
            "check_name": each.finding.code,
            "fingerprint": in_project(each, fingerprint),
            "severity": GITLAB_SEVERITIES[each.finding.severity],
            "location": {
                "path": Path(short_path(each.path)).as_posix(),
                "lines": {"begin": 1 if each.cells else each.finding.range.start.line + 1},
            },
        }
        for each, fingerprint in zip(reported, fingerprints(reported), strict=True)
    ]
