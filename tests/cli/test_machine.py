"""Findings as other programs read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxsight.cli.output.reports import formats, machine, sarif
from jaxsight.cli.output.reports.reported import (
    CheckResult,
    ExaminedFile,
    IncompleteFunction,
    RefusedFunction,
    Reported,
)
from jaxsight.cli.sources.notebooks import Cells
from jaxsight.features.caveats import Completeness
from jaxsight.features.findings.examined import Examination
from jaxsight.features.kernels.table import Uncompiled
from jaxsight.rules.finding import Finding, Severity
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.source.text import Position, Range

SOURCE = "def f(x):\n    return bool(x)\n"
FINDING = Finding(
    "JX401",
    Severity.ERROR,
    Range(Position(1, 11), Position(1, 18)),
    "not known,\n100 % traced",
    "https://example.org/JX401",
)


def checked(
    reported: Sequence[Reported] = (),
    incomplete: Sequence[IncompleteFunction] = (),
    refused: Sequence[RefusedFunction] = (),
    examined: Sequence[ExaminedFile] = (),
    files: int = 0,
) -> CheckResult:
    parts = tuple(reported), tuple(incomplete), tuple(refused), tuple(examined)
    return CheckResult(*parts, files=files)


def reported(path: str = "/project/a, b.py") -> list[Reported]:
    return [Reported(path, SOURCE, FINDING)]


def test_json_has_the_keys_of_ruff_and_counts_from_one() -> None:
    assert machine.as_json(checked(reported())) == [
        {
            "code": "JX401",
            "message": "not known,\n100 % traced",
            "help": None,
            "notes": [],
            "data": None,
            "filename": "/project/a, b.py",
            "location": {"row": 2, "column": 12},
            "end_location": {"row": 2, "column": 19},
            "url": "https://example.org/JX401",
            "fix": None,
            "severity": "error",
            "assumed_inputs": None,
            "complete": True,
            "caveats": [],
        }
    ]


@dataclass(frozen=True, slots=True)
class Loop:
    trips: int
    lengths: tuple[int, ...]
    step: object


EXPLAINED = replace(FINDING, help="unroll it", notes=("in 2 ms",), data=Loop(4, (1, 2), object()))


def test_help_notes_and_figures_are_keys_of_their_own() -> None:
    [one] = machine.as_json(checked([Reported("/project/a.py", SOURCE, EXPLAINED)]))
    assert one["message"] == FINDING.message
    assert (one["help"], one["notes"]) == ("unroll it", ["in 2 ms"])
    assert one["data"] == {"trips": 4, "lengths": (1, 2)}


def test_github_and_sarif_say_help_and_notes_below_the_message() -> None:
    explained = [Reported("/project/a.py", SOURCE, EXPLAINED)]
    assert formats.as_github(checked(explained)).endswith("%0Ahelp: unroll it%0Anote: in 2 ms")
    [result] = sarif.as_sarif(checked(explained))["runs"][0]["results"]
    assert result["message"]["text"].endswith("\nhelp: unroll it\nnote: in 2 ms")


CAVEAT = SliceCaveat(Range(Position(119, 0), Position(119, 0)), "`train()` was not run,\n100 %")
WORDS = "`train()` was not run, 100 %"


def incomplete() -> list[IncompleteFunction]:
    """Two functions of a file, and one statement that both leave out."""
    places = (Range(Position(line, 0), Position(line + 1, 17)) for line in (0, 4))
    functions = (
        Completeness(name, range, (CAVEAT,)) for name, range in zip("fg", places, strict=True)
    )
    return [IncompleteFunction("/project/a, b.py", function) for function in functions]


def test_json_of_a_finding_says_what_its_answer_leaves_out() -> None:
    [one] = machine.as_json(checked([replace(reported()[0], caveats=(CAVEAT,))]))
    assert one["complete"] is False
    assert one["caveats"] == [{"line": 120, "reason": WORDS}]


def test_json_has_an_object_for_each_function_that_leaves_something_out() -> None:
    assert machine.as_json(checked([], incomplete()))[1] == {
        "code": "incomplete",
        "message": "`g` may differ from the imported module",
        "help": None,
        "notes": [],
        "data": None,
        "filename": "/project/a, b.py",
        "location": {"row": 5, "column": 1},
        "end_location": {"row": 6, "column": 18},
        "url": None,
        "fix": None,
        "severity": "information",
        "function": "g",
        "complete": False,
        "caveats": [{"line": 120, "reason": WORDS}],
    }


def test_github_has_a_notice_on_each_line_that_was_left_out() -> None:
    assert formats.as_github(checked([], incomplete())) == (
        "::notice title=jaxsight (incomplete),file=/project/a%2C b.py,line=120"
        "::`train()` was not run, 100 %25"
    )


def test_sarif_has_no_result_but_a_notification_for_what_was_left_out() -> None:
    [run] = sarif.as_sarif(checked([], incomplete()))["runs"]
    assert run["results"] == []
    [invocation] = run["invocations"]
    assert invocation["executionSuccessful"] is True
    [summary, notification] = invocation["toolExecutionNotifications"]
    assert (notification["level"], notification["message"]) == ("note", {"text": WORDS})
    [location] = notification["locations"]
    assert location["physicalLocation"]["region"] == {"startLine": 120}
    assert notification["descriptor"] == {"id": "incomplete"}
    assert summary["message"] == {"text": "no functions to examine"}


def refused() -> list[RefusedFunction]:
    place = Range(Position(4, 4), Position(4, 5))
    function = Uncompiled("g", place, "h100", "it spans 8 devices,\n100 %")
    return [RefusedFunction("/project/a, b.py", function)]


NOT_COMPILED = "`g` is not compiled for h100: it spans 8 devices,\n100 %"


def test_json_has_an_object_for_each_function_that_was_not_compiled() -> None:
    assert machine.as_json(checked([], refused=refused())) == [
        {
            "code": "not-compiled",
            "message": NOT_COMPILED,
            "help": None,
            "notes": [],
            "data": None,
            "filename": "/project/a, b.py",
            "location": {"row": 5, "column": 5},
            "end_location": {"row": 5, "column": 6},
            "url": None,
            "fix": None,
            "severity": "information",
            "function": "g",
            "target": "h100",
        }
    ]


def test_github_has_a_notice_for_each_function_that_was_not_compiled() -> None:
    assert formats.as_github(checked([], refused=refused())) == (
        "::notice title=jaxsight (not-compiled),file=/project/a%2C b.py,line=5"
        "::`g` is not compiled for h100: it spans 8 devices,%0A100 %25"
    )


def test_sarif_has_a_notification_for_each_function_that_was_not_compiled() -> None:
    [run] = sarif.as_sarif(checked([], refused=refused()))["runs"]
    assert run["results"] == []
    [_, notification] = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"] == {"text": NOT_COMPILED}
    [location] = notification["locations"]
    assert location["physicalLocation"]["region"] == {"startLine": 5}


def examined() -> list[ExaminedFile]:
    """A file with a function that was examined, one that was not, and a test."""
    places = [Range(Position(line, 4), Position(line, 5)) for line in (0, 4, 8)]
    functions = (
        Examination("f", places[0], "assumed", "x: f32[B,D]"),
        Examination("g", places[1], kind="untried", reason="no example inputs"),
        Examination("test_g", places[2], kind="program", reason="it is a test"),
    )
    return [ExaminedFile("/project/a.py", functions)]


def test_json_has_an_object_for_each_file_with_what_was_examined() -> None:
    start = {"row": 1, "column": 1}
    [one] = machine.as_json(checked([], examined=examined()))
    functions = one.pop("functions")
    assert one == {
        "code": "examined",
        "message": "examined 1 of 2 functions (1 assumed)",
        "help": None,
        "notes": [],
        "data": None,
        "filename": "/project/a.py",
        "location": start,
        "end_location": start,
        "url": None,
        "fix": None,
        "severity": "information",
        "origins": {"assumed": 1},
    }
    assert functions[0] == {
        "function": "f",
        "location": {"row": 1, "column": 5},
        "end_location": {"row": 1, "column": 6},
        "examined": True,
        "origin": "assumed",
        "inputs": "x: f32[B,D]",
        "kind": None,
        "reason": None,
    }
    assert [(f["examined"], f["kind"], f["reason"]) for f in functions[1:]] == [
        (False, "untried", "no example inputs"),
        (False, "program", "it is a test"),
    ]


def test_sarif_has_a_notification_for_each_function_that_was_not_examined() -> None:
    [run] = sarif.as_sarif(checked([], examined=examined()))["runs"]
    summary, missed = run["invocations"][0]["toolExecutionNotifications"]
    assert summary == {
        "descriptor": {"id": "examined"},
        "level": "note",
        "message": {"text": "examined 1 of 2 functions (1 assumed)"},
        "properties": {"origins": {"assumed": 1}, "not_examined": {"untried": 1}},
    }
    assert missed["message"] == {"text": "`g` is not examined: no example inputs"}
    [location] = missed["locations"]
    assert location["physicalLocation"]["region"] == {"startLine": 5}


CELLS = Cells((2, 4), (0, 1))
"""Two cells of code: one line, and the rest."""


def test_lines_of_a_notebook_are_those_of_its_cells() -> None:
    in_cell = [replace(reported("/project/a.ipynb")[0], cells=CELLS, caveats=(CAVEAT,))]
    [one] = machine.as_json(checked(in_cell))
    assert (one["cell"], one["location"]) == (4, {"row": 1, "column": 12})
    assert one["caveats"] == [{"cell": 4, "line": 119, "reason": WORDS}]
    [result] = sarif.as_sarif(checked(in_cell))["runs"][0]["results"]
    assert result["message"]["text"].startswith("cell 4:1: not known")
    assert "region" not in result["locations"][0]["physicalLocation"]
    assert formats.as_github(checked(in_cell)).startswith(
        "::error title=jaxsight (JX401),file=/project/a.ipynb::cell 4:1: not known"
    )


def test_no_findings_are_an_empty_list_of_json() -> None:
    assert machine.as_json(checked()) == []


def test_json_says_that_nothing_was_examined() -> None:
    [only] = machine.as_json(checked(files=2), {})
    assert (only["code"], only["severity"]) == ("nothing-examined", "warning")
    assert only["message"] == "no functions to examine in 2 files"
    assert only["help"] == "pass files with functions that use JAX"
    unexamined = [replace(file, functions=file.not_examined) for file in examined()]
    *_, last = machine.as_json(checked([], examined=unexamined, files=1))
    assert last["message"] == "1 function not examined: 1 without inputs"
    assert last["help"] == "see `reason` of each function"
    codes = [one["code"] for one in machine.as_json(checked([], examined=examined(), files=1))]
    assert codes == ["examined"], "something was"
    assert machine.as_json(checked(reported(), files=1))[-1]["code"] == "JX401", (
        "a finding is no silence"
    )


def test_github_commands_escape_what_would_end_them() -> None:
    assert formats.as_github(checked(reported())) == (
        "::error title=jaxsight (JX401),file=/project/a%2C b.py,line=2,col=12,endLine=2,endColumn=19"
        "::not known,%0A100 %25 traced"
    )


def test_sarif_results_refer_to_rules_of_the_run() -> None:
    [run] = sarif.as_sarif(checked(reported()))["runs"]
    [result] = run["results"]
    [rule] = run["tool"]["driver"]["rules"]
    assert result["ruleId"] == rule["id"] == "JX401"
    assert result["level"] == "error"
    [location] = result["locations"]
    physical = location["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "file:///project/a%2C%20b.py"
    assert physical["region"] == {"startLine": 2, "startColumn": 12, "endLine": 2, "endColumn": 19}
