"""Findings as people read them: the line, and carets under exactly what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.cli.output.reports.reported import Reported
from jaxsight.cli.output.reports.text import report
from jaxsight.rules.finding import Finding, Place, Severity
from jaxsight.source.text import Position, Range

SOURCE = "import jax\n\ndef f(x):\n\tif 'é漢𝒳' and bool(x):\n        pass\n"


def finding(start: tuple[int, int], end: tuple[int, int], message: str = "wrong") -> Finding:
    return Finding("JX401", Severity.ERROR, Range(Position(*start), Position(*end)), message)


def lines(found: Finding, source: str = SOURCE) -> list[str]:
    return report(Reported("/p/m.py", source, found)).plain.split("\n")


def test_a_report_has_severity_code_message_place_line_and_carets() -> None:
    assert lines(finding((2, 4), (2, 5))) == [
        "error[JX401]: wrong",
        " --> /p/m.py:3:5",
        "  |",
        "3 | def f(x):",
        "  |     ^",
    ]


def test_carets_stand_under_the_range_after_tabs_and_wide_characters() -> None:
    column = SOURCE.split("\n")[3].index("bool")
    shown, carets = lines(finding((3, column), (3, column + 7)))[3:5]
    assert shown == "4 |     if 'é漢𝒳' and bool(x):"
    assert carets == f"  | {' ' * 18}^^^^^^^"


def test_a_range_over_lines_is_underlined_to_the_end_of_its_first() -> None:
    assert lines(finding((2, 0), (4, 0)))[-1] == "  | ^^^^^^^^^"


def test_an_empty_range_has_one_caret() -> None:
    assert lines(finding((2, 9), (2, 9)))[-1] == "  |          ^"


def test_a_place_behind_the_end_of_the_file_shows_no_line() -> None:
    assert lines(finding((9, 0), (9, 1))) == ["error[JX401]: wrong", "  --> /p/m.py:10:1"]


def test_further_lines_related_places_and_the_page_follow() -> None:
    found = Finding(
        "JX402",
        Severity.WARNING,
        Range(Position(0, 0), Position(0, 6)),
        "leaked\ntry this",
        "https://example.org",
        (Place("/p/other.py", Range(Position(4, 2), Position(4, 3)), "called from here"),),
    )
    assert lines(found)[5:] == [
        "  = try this",
        "  = /p/other.py:5:3: called from here",
        "  = see https://example.org",
    ]


def test_help_and_notes_follow_and_wrap_to_the_width_below_their_text() -> None:
    found = Finding(
        "JX207",
        Severity.WARNING,
        Range(Position(0, 0), Position(0, 6)),
        "short loop",
        help="pass `unroll=True` to fuse the iterations into one kernel",
        notes=("each iteration launches 3 kernels",),
    )
    assert lines(found)[5:] == [
        "  = help: pass `unroll=True` to fuse the iterations into one kernel",
        "  = note: each iteration launches 3 kernels",
    ]
    wrapped = report(Reported("/p/m.py", SOURCE, found), 48).plain.split("\n")
    assert wrapped[5:] == [
        "  = help: pass `unroll=True` to fuse the",
        "          iterations into one kernel",
        "  = note: each iteration launches 3 kernels",
    ]


def test_paths_are_shown_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = report(Reported(str(tmp_path / "src" / "m.py"), SOURCE, finding((0, 0), (0, 6))))
    assert f" --> {Path('src', 'm.py')}:1:1" in found.plain
