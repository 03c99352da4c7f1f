"""`python -m tools.perf.window_start`: what passes until a file that comes up with its window has its shapes.

VS Code's window and its extension host mark the stages of their starts themselves, the server and
the tracer as for an edit (`jaxsight/timeline.py`). The median of each stage is a bar of the picture
and a row of the table in `docs/waterfall.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from jaxsight import timeline
from tests.vscode.code_server import CodeServer, code_server
from tests.vscode.project import SHAPES, make
from tests.vscode.window import chromium, fresh, window
from tools.perf.editor import BenchError, milliseconds
from tools.perf.measures import Figure, Goal
from tools.perf.waterfall_picture import Bar, Stage, picture

FILE = "table.py"
TEXT = '''\
import jax.numpy as jnp


def scaled(x):
    """What one key changes is shown on the next line.

    Example inputs:
        x: f32[8, 64]
    """
    size = 100
    table = jnp.ones((8, size))
    return x.sum() * table
'''
HINT = ": f32[8,100]"
PLAIN = f"import jax\n{TEXT}\nprint(jax.make_jaxpr(scaled)(jnp.ones((8, 64))))"
"""A Python that imports JAX, traces and prints."""

RUNS = 10
STOPWATCH = Path(__file__).with_name("stopwatch-extension")
SETTLE = 5.0
"""Seconds until a new window has started what it starts by itself."""
_AFTER = 1.0
"""Seconds until the processes of a closed window have ended."""
_DOCS = Path(__file__).parents[2] / "docs"
_BEGIN, _END = "<!-- window: measured -->\n", "<!-- window: end -->"

# When the first line of the file is drawn in any editor, and when a hint is, in milliseconds since
# the window was opened; and when that was.
FIRST_HINT = """
([line, hint]) => {
  window.firstHint = new Promise((resolve) => {
    let opened;
    const observer = new MutationObserver(() => {
      const text = [...document.querySelectorAll('.view-lines')]
        .map((lines) => lines.textContent.replace(/\\u00a0/g, ' ')).join(' ');
      if (opened === undefined && text.includes(line)) opened = performance.now();
      if (opened === undefined || !text.includes(hint)) return;
      observer.disconnect();
      resolve([opened, performance.now(), performance.timeOrigin]);
    });
    observer.observe(document.body, { subtree: true, childList: true, characterData: true });
  });
}
"""
EXPECTED = ["import jax.numpy as jnp", HINT]

OPENED, DRAWN, SHOWN = "window opened", "file drawn", "hint drawn"
"""Marks of the window."""
_LOAD = "code/extHost/{}LoadExtensionCode/jaxsight.jaxsight"

STAGES = (
    Stage("editor", "load VS Code's page", OPENED, "code/didLoadWorkbenchMain"),
    Stage("editor", "start the workbench", "code/didLoadWorkbenchMain", "code/willRestoreEditors"),
    Stage("editor", "show the file", "code/willRestoreEditors", DRAWN),
    Stage("editor", "start the extension host", "code/willLoadExtensions", "code/extHost/ready"),
    Stage("editor", "load others' extensions", "code/extHost/ready", _LOAD.format("will")),
    Stage("extension", "load it, launch", _LOAD.format("will"), _LOAD.format("did")),
    Stage("server", "start Python", _LOAD.format("did"), "server started"),
    Stage("server", "folders, settings", "server started", "tracer spawned"),
    Stage("server", "import the rest, introduction", "tracer spawned", "initialize answered"),
    Stage("tracer", "start Python", "tracer spawned", "tracer started"),
    Stage("tracer", "import JAX", "tracer started", "sent Hello"),
    Stage("tracer", "import the rest, run the file", "sent Hello", "executed"),
    Stage("tracer", "trace, describe, send", "executed", "decoded Traced"),
    Stage("server", "hints, once asked for", "decoded Traced", "hints answered"),
    Stage("editor", "draw them", "hints answered", SHOWN),
)


@dataclass(frozen=True, slots=True)
class Start:
    """One window's start, in milliseconds: its marks, and a Python beside it that traces."""

    marks: Mapping[str, float]
    plain: float


def starts(
    server: CodeServer, browser: Browser, folder: Path, runs: int, python: str, scratch: Path
) -> Iterator[Start]:
    """Open the same folder with its file again and again; a window before has asked who it is.

    The server must have been started with `variables(scratch)`.
    """
    marks, waits = scratch / "timeline", scratch / "waits.json"
    script = f"({FIRST_HINT.strip()})({json.dumps(EXPECTED)})"
    for _ in range(runs):
        with fresh(browser) as context:
            with window(context, server.port, folder) as editor:
                time.sleep(SETTLE)
                editor.open(FILE)
                editor.sees(HINT)
            time.sleep(_AFTER)
            os.truncate(marks, 0)
            context.add_init_script(f"addEventListener('DOMContentLoaded', () => {script});")
            with window(context, server.port, folder, folder / FILE) as editor:
                drawn, shown, origin = editor.page.evaluate("() => window.firstHint")
                # One clock is the time of day, the other that since the machine started.
                offset = (time.time_ns() - time.perf_counter_ns()) / 1e6
                read = marks.read_text(encoding="utf-8").splitlines()
                ours = [
                    (int(at) / 1e6 + offset - origin, name) for at, _, name in map(_split, read)
                ]
                own = editor.page.evaluate(
                    "() => performance.getEntriesByType('mark').map((m) => [m.startTime, m.name])"
                )
                waits.unlink(missing_ok=True)
                editor.command("Stopwatch: Loading of Extensions")
                editor.until(waits.exists, "the stopwatch has written nothing")
                host = json.loads(waits.read_text(encoding="utf-8"))
                theirs = [(mark["startTime"] - origin, mark["name"]) for mark in host]
        begin = time.perf_counter()
        subprocess.run([python, "-c", PLAIN], check=True, stdout=subprocess.DEVNULL)
        yield Start(
            _chain(
                {OPENED: 0.0, DRAWN: drawn, SHOWN: shown},
                sorted([*ours, *map(tuple, own), *theirs]),
            ),
            milliseconds(begin),
        )


def variables(scratch: Path) -> dict[str, str]:
    """What a server's environment needs, so that its processes mark their stages."""
    marks = scratch / "timeline"
    marks.touch()
    return {timeline.VARIABLE: str(marks), "STOPWATCH_MARKS": str(scratch / "waits.json")}


def _split(line: str) -> tuple[str, str, str]:
    at, process, name = line.split(" ", 2)
    return at, process, name


def _chain(own: Mapping[str, float], marks: Sequence[tuple[float, str]]) -> Mapping[str, float]:
    """Choose the first mark of each name; of hints, that with the shapes."""
    chosen = dict(own)
    for stage in STAGES:
        for name, after in ((stage.begin, 0.0), (stage.end, chosen.get(stage.begin, 0.0))):
            if name not in chosen:
                at = next((at for at, marked in marks if marked == name and at >= after), None)
                if at is None:
                    raise BenchError(f"no mark {name!r}")
                chosen[name] = at
    return chosen


def figures(measured: Sequence[Start]) -> list[Figure]:
    """The goal: at most twice what VS Code itself needs for the file, and a Python for the trace."""
    counted = measured[1:]
    shapes = [start.marks[SHOWN] for start in counted]
    unavoidable = [start.marks[DRAWN] + start.plain for start in counted]
    after = [start.marks[SHOWN] - start.marks[DRAWN] for start in counted]
    plain = [start.plain for start in counted]
    what = "VS Code's file + `python -c`"
    return [
        Figure(
            "a window with its file → shapes", "ms", shapes, unavoidable, what, [Goal(factor=2)]
        ),
        Figure("the file drawn → shapes", "ms", after, plain, "python -c"),
    ]


def _median(measured: Sequence[Start], mark: str) -> float:
    return statistics.median(start.marks[mark] for start in measured)


def table(measured: Sequence[Start]) -> str:
    """Return the stages as a Markdown table, in milliseconds."""
    lines = ["| process | stage | begins at | takes |", "|---|---|--:|--:|"]
    for stage in STAGES:
        takes = statistics.median(s.marks[stage.end] - s.marks[stage.begin] for s in measured)
        lines.append(
            f"| {stage.process} | {stage.label} | {_median(measured, stage.begin):.0f} | {takes:.0f} |"
        )
    lines.append(f"| | **window → its file drawn** | | **{_median(measured, DRAWN):.0f}** |")
    lines.append(f"| | **window → shapes drawn** | | **{_median(measured, SHOWN):.0f}** |")
    plain = statistics.median(start.plain for start in measured)
    lines.append(f"| | *`python -c` that traces the function* | | *{plain:.0f}* |")
    return "\n".join(lines)


def svg(measured: Sequence[Start]) -> str:
    """The waterfall: one bar for each stage."""
    bars = [
        Bar(s.process, s.label, _median(measured, s.begin), _median(measured, s.end))
        for s in STAGES
    ]
    events = [("file", _median(measured, DRAWN)), ("shapes", _median(measured, SHOWN))]
    return picture("A file that comes up with its window, until its shapes", bars, events)


def main() -> None:
    """Measure, and write the picture and the table of the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.perf.window_start", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="windows that are opened")
    parser.add_argument("--dry", action="store_true", help="print the table, and write nothing")
    options = parser.parse_args()
    python = os.environ["JAXSIGHT_PYTHON"]
    with tempfile.TemporaryDirectory(prefix="jaxsight-bench-") as folder:
        scratch = Path(folder)
        os.environ["XDG_CACHE_HOME"] = folder
        project = make(scratch / "project", {FILE: TEXT}, python=python, settings=SHAPES)
        with (
            code_server(
                scratch / "code", extensions=[STOPWATCH], variables=variables(scratch)
            ) as server,
            chromium() as browser,
        ):
            measured = list(starts(server, browser, project, options.runs + 1, python, scratch))
    counted = measured[1:]
    for figure in figures(measured):
        print(figure.name, json.dumps(figure.data()))
    print(table(counted))
    if options.dry:
        return
    (_DOCS / "pictures" / "waterfall-window.svg").write_text(svg(counted), encoding="utf-8")
    page = _DOCS / "waterfall.md"
    shown = page.read_text(encoding="utf-8")
    begin, end = shown.index(_BEGIN) + len(_BEGIN), shown.index(_END)
    page.write_text(f"{shown[:begin]}\n{table(counted)}\n\n{shown[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
