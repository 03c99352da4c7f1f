"""Findings in the formats of platforms, and how these find a finding again."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from jaxsight.cli.output.reports import formats, junit, sarif
from jaxsight.cli.output.reports.reported import CheckResult, ExaminedFile, Reported
from jaxsight.features.findings.examined import Examination
from jaxsight.rules.finding import Finding, Severity
from jaxsight.source.text import Position, Range

SOURCE = """\
import jax.numpy as jnp


def loss(x, y):
    return jnp.log(jnp.exp(x - y))


class Model:
    def call(self, x):
        return jnp.log(jnp.exp(x - x))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(code: str, source: str, severity: Severity = Severity.WARNING) -> list[Reported]:
    """The findings of a rule at each place of some code."""
    places, at = [], source.find(code)
    while at >= 0:
        before, text = source[:at], code
        start = Position(before.count("\n"), len(before) - before.rfind("\n") - 1)
        end = Position(start.line + text.count("\n"), start.column + len(text))
        if "\n" in text:
            end = Position(end.line, len(text) - text.rfind("\n") - 1)
        places.append(Range(start, end))
        at = source.find(code, at + 1)
    url = "https://example.org/JX405"
    return [
        Reported(
            str(Path.cwd() / "model.py"),
            source,
            Finding("JX405", severity, place, "`log` of `a|b` @someone", url, help="use `x`"),
        )
        for place in places
    ]


def hashes(reported: list[Reported]) -> list[str]:
    [run] = sarif.as_sarif(CheckResult(tuple(reported)))["runs"]
    return [each["partialFingerprints"]["primaryLocationLineHash"] for each in run["results"]]


def test_a_finding_keeps_its_fingerprint_when_its_lines_move() -> None:
    moved = SOURCE.replace("import", "# a comment\nimport")
    function, of_class = SOURCE.index("def loss"), SOURCE.index("class")
    swapped = SOURCE[:function] + SOURCE[of_class:] + "\n\n" + SOURCE[function:of_class]
    before = hashes(found("jnp.log(jnp.exp(x - y))", SOURCE))
    assert hashes(found("jnp.log(jnp.exp(x - y))", moved)) == before
    assert hashes(found("jnp.log(jnp.exp(x - y))", swapped)) == before


def test_a_formatter_does_not_change_it() -> None:
    formatted = SOURCE.replace("jnp.exp(x - y))", "\n        jnp.exp(x - y),\n    )")
    after = hashes(found("jnp.log(\n        jnp.exp(x - y),\n    )", formatted))
    assert after == hashes(found("jnp.log(jnp.exp(x - y))", SOURCE))


def test_the_same_code_in_other_functions_and_repeated_code_differ() -> None:
    twice = SOURCE.replace("- x))", "- x)) + jnp.log(jnp.exp(x - x))").replace("x - y", "x - x")
    three = hashes(found("jnp.log(jnp.exp(x - x))", twice))
    assert len(set(three)) == 3
    assert three[1].partition(":")[0] == three[2].partition(":")[0]
    assert [each.rpartition(":")[2] for each in three] == ["1", "1", "2"]


def test_gitlab_has_an_issue_for_each_finding() -> None:
    twice = SOURCE.replace("- x))", "- x)) + jnp.log(jnp.exp(x - x))")
    first, second = formats.as_gitlab(found("jnp.log(jnp.exp(x - x))", twice))
    assert first["fingerprint"] != second["fingerprint"]
    assert {**first, "fingerprint": ""} == {
        "description": "`log` of `a|b` @someone · help: use `x`",
        "check_name": "JX405",
        "fingerprint": "",
        "severity": "minor",
        "location": {"path": "model.py", "lines": {"begin": 10}},
    }


def examined() -> list[ExaminedFile]:
    def at(line: int) -> Range:
        return Range(Position(line, 4), Position(line, 8))

    functions = (
        Examination("loss", at(3), "docstring", "f32[8]"),
        Examination("Model.call", at(8), kind="no-inputs", reason="no example inputs\x07"),
        Examination("main", at(20), kind="program", reason="programs"),
        Examination("other", at(30), "docstring", "f32[8]"),
    )
    return [ExaminedFile(str(Path.cwd() / "model.py"), functions)]


def suite(document: str) -> ElementTree.Element:
    root = ElementTree.fromstring(document)
    [suite] = root
    assert {name: root.get(name) for name in ("tests", "failures", "skipped")} == {
        name: suite.get(name) for name in ("tests", "failures", "skipped")
    }
    return suite


def test_junit_has_a_case_for_each_function_and_finding() -> None:
    made = suite(junit.as_junit(found("jnp.log(jnp.exp(x - y))", SOURCE), examined()))
    assert made.attrib == {
        "name": "model.py",
        "tests": "4",
        "failures": "1",
        "skipped": "1",
        "errors": "0",
    }
    loss, other, call, finding = made
    assert loss.attrib == {"name": "loss", "classname": "model", "file": "model.py", "line": "4"}
    assert len(loss) == len(other) == 0
    [skipped] = call
    assert skipped.get("message") == r"no example inputs\x07"
    assert finding.attrib == {**loss.attrib, "name": "JX405", "line": "5"}
    [failure] = finding
    assert (failure.get("type"), failure.get("message")) == ("JX405", "`log` of `a|b` @someone")
    assert "model.py:5:12" in (failure.text or "")
    assert "help: use `x`" in (failure.text or "")


def test_junit_passes_with_information() -> None:
    finding = found("import jax", SOURCE, Severity.INFORMATION)
    made = suite(junit.as_junit(finding, []))
    assert (made.get("tests"), made.get("failures")) == ("1", "0")
    [case] = made
    assert case.get("name") == "JX405"
    assert [each.tag for each in case] == ["system-out"]
