"""Marks of stages: off by default, and lines of a file if the benchmark names one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from jaxsight import timeline
from tools.perf.waterfall_picture import Bar, picture

_MARKS = """
from jaxsight.timeline import mark
mark("begun")
mark("asked", 0.5)
"""


def _run(**environ: str) -> None:
    subprocess.run([sys.executable, "-c", _MARKS], env={**os.environ, **environ}, check=True)


def test_marks_are_lines_in_order(tmp_path: Path) -> None:
    file = tmp_path / "timeline"
    file.touch()
    _run(**{timeline.VARIABLE: str(file)})
    lines = [line.split(" ", 2) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [stage for _, _, stage in lines] == ["begun", "asked float"]
    (first, process, _), (second, same, _) = lines
    assert int(first) <= int(second)
    assert process == same


def test_marks_are_off_by_default(tmp_path: Path) -> None:
    _run()
    assert timeline.VARIABLE not in os.environ
    assert list(tmp_path.iterdir()) == []


def test_a_picture_has_a_bar_for_each_stage_and_a_line_for_each_event() -> None:
    bars = [Bar("server", "parse <text>", 0.0, 1.5), Bar("tracer", "trace", 1.5, 4.0)]
    root = ElementTree.fromstring(picture("A & B", bars, [("hover", 4.0)]))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "parse <text>" in texts
    assert "hover" in texts
    rows = [
        element
        for element in root.iter("{http://www.w3.org/2000/svg}rect")
        if element.get("height") == "12"
    ]
    assert [row.get("class") for row in rows] == ["server", "tracer"]
