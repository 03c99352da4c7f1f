"""Findings as other programs read them."""

from __future__ import annotations

import json

from jaxsight.cli.reports import Reported, machine
from jaxsight.engine.answers import Finding, Severity
from jaxsight.engine.text import Position, Range

SOURCE = "def f(x):\n    return bool(x)\n"
FINDING = Finding(
    "JX401",
    Severity.ERROR,
    Range(Position(1, 11), Position(1, 18)),
    "not known,\n100 % traced",
    "https://example.org/JX401",
)


def reported(path: str = "/project/a, b.py") -> list[Reported]:
    return [Reported(path, SOURCE, FINDING)]


def test_json_has_the_keys_of_ruff_and_counts_from_one() -> None:
    assert json.loads(machine.as_json(reported())) == [
        {
            "code": "JX401",
            "message": "not known,\n100 % traced",
            "filename": "/project/a, b.py",
            "location": {"row": 2, "column": 12},
            "end_location": {"row": 2, "column": 19},
            "url": "https://example.org/JX401",
            "fix": None,
            "severity": "error",
        }
    ]


def test_no_findings_are_an_empty_list_of_json() -> None:
    assert json.loads(machine.as_json([])) == []


def test_github_commands_escape_what_would_end_them() -> None:
    assert machine.as_github(reported()) == (
        "::error title=jaxsight (JX401),file=/project/a%2C b.py,line=2,col=12,endLine=2,endColumn=19"
        "::not known,%0A100 %25 traced"
    )


def test_sarif_results_refer_to_rules_of_the_run() -> None:
    [run] = json.loads(machine.as_sarif(reported()))["runs"]
    [result] = run["results"]
    [rule] = run["tool"]["driver"]["rules"]
    assert result["ruleId"] == rule["id"] == "JX401"
    assert result["level"] == "error"
    [location] = result["locations"]
    physical = location["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "file:///project/a%2C%20b.py"
    assert physical["region"] == {"startLine": 2, "startColumn": 12, "endLine": 2, "endColumn": 19}
