"""Where each millisecond goes between an edit and what it shows, in three processes.

The server, the tracer and the compiler mark the stages that they reach (`jaxsight/timeline.py`).
`python -m tools.perf.waterfall` measures, and writes the pictures and tables of
`docs/waterfall.md`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jaxsight import timeline
from tools.perf.editor import ENVIRONMENT, SERVER, BenchError, Editor
from tools.perf.hovering import Editing
from tools.perf.measures import Figure
from tools.perf.programs import ADAM, SMALL, TRANSFORMER, Program
from tools.perf.waterfall_picture import Bar, Stage, picture

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "waterfall.md"
REPORTS = Path("reports")

_RUNS = 15
_WARM_UPS = 3
_PAUSE = 0.3
_PAUSES = 3
"""Seconds between two edits, or so many times what the last one took: what the server does behind an
answer, such as the complete compile, is then over.
"""

EDIT, HOVER, HINT = "edit", "hover shown", "hint shown"
"""Marks of the editor."""


TO_HOVER = (
    Stage("server", "read the message", EDIT, "change received"),
    Stage("server", "parse the statement", "change received", "change parsed"),
    Stage("server", "example inputs, slice, key", "change parsed", "asked Trace"),
    Stage("tracer", "wake up, decode", "asked Trace", "received Trace"),
    Stage("tracer", "execute the definition", "received Trace", "executed"),
    Stage("tracer", "make the inputs, trace", "executed", "traced"),
    Stage("tracer", "observations, text of the jaxpr", "traced", "described"),
    Stage("tracer", "encode, send", "described", "sent Traced"),
    Stage("server", "wake up, decode", "sent Traced", "decoded Traced"),
    Stage("server", "text of the hover", "decoded Traced", "hover answered"),
    Stage("server", "send the hover", "hover answered", HOVER),
)
TO_HINT = (
    Stage("server", "wait until the hover is sent", "decoded Traced", "asked Lower"),
    Stage("tracer", "wake up, decode", "asked Lower", "received Lower"),
    Stage("tracer", "name the locations", "received Lower", "located"),
    Stage("tracer", "lower to StableHLO", "located", "lowered"),
    Stage("tracer", "serialize the program", "lowered", "serialized"),
    Stage("tracer", "list the equations, encode, send", "serialized", "sent Lowered"),
    Stage("server", "wake up, decode", "sent Lowered", "decoded Lowered"),
    Stage("server", "look into the caches", "decoded Lowered", "asked Compile"),
    Stage("compiler", "wake up, decode", "asked Compile", "received Compile"),
    Stage("compiler", "XLA, up to the scheduled HLO", "received Compile", "scheduled"),
    Stage("compiler", "print the HLO", "scheduled", "HLO printed"),
    Stage("compiler", "read the kernels", "HLO printed", "kernels read"),
    Stage("compiler", "encode, send", "kernels read", "sent Compiled"),
    Stage("server", "wake up, decode", "sent Compiled", "decoded Compiled"),
    Stage("server", "make the hints (asked again, if late)", "decoded Compiled", "hints answered"),
    Stage("server", "send the hints", "hints answered", HINT),
)
STAGES = (*TO_HOVER, *TO_HINT)

PROGRAMS = (
    ("small", "a small function", SMALL),
    ("adam", "optax adam update", ADAM),
    ("layers", "gradient of 12 layers", TRANSFORMER),
)

Marks = Mapping[str, float]
"""Milliseconds after the edit, by mark."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The edits of one program, each with its marks."""

    name: str
    title: str
    edits: Sequence[Marks]

    def at(self, mark: str) -> float:
        """The median of a mark, in milliseconds after the edit."""
        return statistics.median(marks[mark] for marks in self.edits)

    def spent(self, stage: Stage) -> float:
        """The median of a stage's milliseconds."""
        return statistics.median(marks[stage.end] - marks[stage.begin] for marks in self.edits)

    def figures(self) -> Iterator[Figure]:
        """How long the hover and the hint take."""
        for what, mark in (("hover", HOVER), ("kernel hint", HINT)):
            samples = [marks[mark] for marks in self.edits]
            yield Figure(f"edit → {what}, with marks: {self.title}", "ms", samples)

    def svg(self) -> str:
        """The waterfall: one bar for each stage."""
        bars = [Bar(s.process, s.label, self.at(s.begin), self.at(s.end)) for s in STAGES]
        events = [("hover", self.at(HOVER)), ("kernel hint", self.at(HINT))]
        return picture(f"From an edit to the hover and the kernel hint: {self.title}", bars, events)


def by_program(root: Path, runs: int) -> list[Figure]:
    """Draw the waterfalls into `reports/`, and return how long the answers take."""
    REPORTS.mkdir(exist_ok=True)
    figures: list[Figure] = []
    for measured in _all(root, runs):
        file = REPORTS / f"waterfall-{measured.name}.svg"
        file.write_text(measured.svg(), encoding="utf-8")
        figures += measured.figures()
    return figures


def _all(root: Path, runs: int) -> Iterator[Measured]:
    for name, title, program in PROGRAMS:
        print(f"waterfall: {title} …", file=sys.stderr, flush=True)
        edits = list(_edits(root, program, runs))
        if not edits:
            raise BenchError(f"{title}: no edit has all marks")
        yield Measured(name, title, edits)


def _edits(root: Path, program: Program, runs: int) -> Iterator[Marks]:
    """Edit a program again and again, and yield the marks of each edit."""
    with tempfile.TemporaryDirectory(dir=root) as folder:
        file = Path(folder, "timeline")
        file.touch()
        # Nothing that was compiled in another run.
        variables = {timeline.VARIABLE: str(file), "XDG_CACHE_HOME": folder}
        with Editor(root, SERVER, environment={**ENVIRONMENT, **variables}) as editor:
            editor.initialize(settings={"target": "cpu"})
            editor.open(program.file, program.text)
            editor.hover(program.file, program.heading[4:])
            editor.hints_until(program.file, partial(_is_current, program))
            editing = Editing(editor, program.file, program)
            for number in range(runs + _WARM_UPS):
                own = _edit(editor, editing, program)
                time.sleep(max(_PAUSE, _PAUSES * (own[HINT] - own[EDIT]) / 1e9))
                if number >= _WARM_UPS and (marks := _chain(own, _read(file))) is not None:
                    yield marks
                os.truncate(file, 0)


def _edit(editor: Editor, editing: Editing, program: Program) -> dict[str, int]:
    """Edit, and wait for the hover and for the kernel hint; return the editor's own marks."""
    begin = time.perf_counter_ns()
    editing.edit_and_hover()
    hover = time.perf_counter_ns()
    editor.hints_until(program.file, partial(_is_current, program))
    return {EDIT: begin, HOVER: hover, HINT: time.perf_counter_ns()}


def _is_current(program: Program, line: int, label: str) -> bool:
    """Whether a hint shows the kernels of the function as it stands; others have some, too."""
    above = program.text[: program.text.index(program.heading)].count("\n")
    return line == above and label.startswith("▣") and "kernel" in label and "~" not in label


def _read(file: Path) -> list[tuple[int, str]]:
    lines = (line.split(" ", 2) for line in file.read_text(encoding="utf-8").splitlines())
    return sorted((int(nanoseconds), stage) for nanoseconds, _, stage in lines)


def _chain(own: Mapping[str, int], marks: Sequence[tuple[int, str]]) -> Marks | None:
    """Choose the marks of one edit: each is the first of its name after the one before it.

    `None` if a stage was not marked: on a busy machine the complete compile may be the first.
    """
    chosen = dict(own)
    for stage in STAGES:
        after = chosen[stage.begin]
        if stage.end in own:
            continue
        at = next((at for at, name in marks if name == stage.end and at >= after), None)
        if at is None:
            return None
        chosen[stage.end] = at
    return {name: (at - own[EDIT]) / 1e6 for name, at in chosen.items()}


def table(measured: Sequence[Measured]) -> str:
    """Return the stages as a Markdown table, in milliseconds, with a column for each program."""
    titles = " | ".join(each.title for each in measured)
    lines = [f"| process | stage | {titles} |", f"|---|---|{'--:|' * len(measured)}"]
    for stages, what, mark in ((TO_HOVER, "hover", HOVER), (TO_HINT, "kernel hint", HINT)):
        for stage in stages:
            spent = " | ".join(_milliseconds(each.spent(stage)) for each in measured)
            lines.append(f"| {stage.process} | {stage.label} | {spent} |")
        total = " | ".join(f"**{_milliseconds(each.at(mark))}**" for each in measured)
        lines.append(f"| | **edit → {what}** | {total} |")
    return "\n".join(lines)


def _milliseconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


BEGIN, END = "<!-- measured -->\n", "<!-- end -->"


def main() -> None:
    """Measure, and write the pictures and the table of the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.perf.waterfall", description=__doc__)
    parser.add_argument("--runs", type=int, default=_RUNS, help="edits of each program")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jaxsight-bench-") as folder:
        Path(folder, "pyproject.toml").touch()
        measured = list(_all(Path(folder), options.runs))
    for each in measured:
        picture_file = DOCS / "pictures" / f"waterfall-{each.name}.svg"
        picture_file.write_text(each.svg(), encoding="utf-8")
    shown = PAGE.read_text(encoding="utf-8")
    begin = shown.index(BEGIN) + len(BEGIN)
    end = shown.index(END)
    PAGE.write_text(f"{shown[:begin]}\n{table(measured)}\n\n{shown[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
