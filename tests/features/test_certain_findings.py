"""A rule is silent on the lines where another one says the same with certainty."""

from __future__ import annotations

from pathlib import PurePosixPath

from jaxsight.features.findings.report import report
from jaxsight.rules.finding import finding_of
from jaxsight.settings.schema import Settings
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range


def test_an_escaped_tracer_is_not_reported_where_the_leak_is_seen() -> None:
    module = Module.parse("KEPT.append(x)\nKEPT.append(y)\n")
    first = Range(Position(0, 0), Position(0, 14))
    second = Range(Position(1, 0), Position(1, 14))
    found = [
        finding_of("JX415", first, "escapes"),
        finding_of("JX402", first, "leaked"),
        finding_of("JX415", second, "escapes"),
    ]
    reported = report(module, (), found, Settings(), PurePosixPath("model.py"))
    assert [(each.code, each.range) for each in reported] == [("JX402", first), ("JX415", second)]
