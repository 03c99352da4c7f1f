"""`python -m tools.perf.in_vscode`: what VS Code, the real one with the packaged extension, adds to
what the server takes.

It runs in the environment of the tests in VS Code. The bare client talks to the same server, of the
same package, in the same Python.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.vscode.code_server import REPOSITORY, CodeServer, code_server
from tests.vscode.project import SHAPES, make
from tests.vscode.window import ACTIVE, Window, chromium, window
from tools.perf.editor import Editor, milliseconds
from tools.perf.measures import Figure, Goal, table
from tools.perf.window_start import (
    EXPECTED,
    FILE,
    FIRST_HINT,
    PLAIN,
    SETTLE,
    STOPWATCH,
    TEXT,
    figures,
    starts,
    variables,
)

RUNS = 20
QUICK = 15

_PAUSE = 1.5
"""Seconds between two edits. VS Code asks for hints once more 0.8 seconds after the last key."""

_LOADING = re.compile(r"([\w.-]+)=(\d+)")
_CALL = 4
"""The column of *Developer: Startup Performance* that has the call of `activate`."""
_INSTALLATIONS = 3
_WARM_UPS = 3
"""Edits before those that count."""

# From the next key until a text is drawn in the editor, in milliseconds, as a promise.
_WATCH = """
([selector, text]) => {
  const lines = document.querySelector(selector + ' .view-lines');
  window.drawn = new Promise((resolve) => {
    let pressed;
    document.addEventListener('keydown', () => { pressed = performance.now(); }, { capture: true, once: true });
    const observer = new MutationObserver(() => {
      if (pressed === undefined || !lines.textContent.replace(/\\u00a0/g, ' ').includes(text)) return;
      observer.disconnect();
      resolve(performance.now() - pressed);
    });
    observer.observe(lines, { subtree: true, childList: true, characterData: true });
  });
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.perf.in_vscode", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} runs instead of {RUNS}")
    parser.add_argument("--starts", action="store_true", help="measure only the starts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples here")
    options = parser.parse_args()
    python = os.environ["JAXSIGHT_PYTHON"]
    runs = QUICK if options.quick else RUNS
    with tempfile.TemporaryDirectory(prefix="jaxsight-bench-") as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        folder = make(Path(scratch, "project"), {FILE: TEXT}, python=python, settings=SHAPES)
        with (
            code_server(
                Path(scratch, "code"), extensions=[STOPWATCH], variables=variables(Path(scratch))
            ) as server,
            chromium() as browser,
        ):
            found = []
            if not options.starts:
                print("hints …", file=sys.stderr, flush=True)
                found = hints(server, browser, folder, Path(scratch, "code"), runs, python)
            print("first shapes …", file=sys.stderr, flush=True)
            found += openings(server, browser, folder, runs, python, Path(scratch))
            print("activation …", file=sys.stderr, flush=True)
            found += activations(server, browser, folder, runs)
        with chromium() as browser:
            print("installations …", file=sys.stderr, flush=True)
            found += installations(browser, Path(scratch), python)
    size = (REPOSITORY / "dist" / "jaxsight.vsix").stat().st_size
    found.append(Figure("size of the .vsix", "MiB", [size / 1024**2]))
    print(table(found, {}))
    if options.json is not None:
        data = {"figures": [figure.data() for figure in found], "load": os.getloadavg()}
        options.json.write_text(json.dumps(data, indent=1, ensure_ascii=False), encoding="utf-8")


def hints(
    server: CodeServer, browser: Browser, folder: Path, code: Path, runs: int, python: str
) -> list[Figure]:
    """From a key to the hint that it changes, drawn; through a bare client, to the answer that has
    it.
    """
    in_vscode: list[float] = []
    bare: list[float] = []
    (start,) = code.glob("extensions/*/bundled/start.py")
    command = [python, "-I", "-S", "-X", "utf8", str(start), "server"]
    with (
        Editor(folder, command) as client,
        window(browser, server.port, folder, folder / FILE) as editor,
    ):
        client.initialize(python)
        client.open(FILE, TEXT)
        client.hints_with(FILE, hint(100))
        editor.sees(f"table{hint(100)}")
        editor.click("size = |100|")
        old = 100
        for place, new in sizes(_WARM_UPS + runs):
            time.sleep(_PAUSE)
            in_vscode.append(_type(editor.page, place, new))
            time.sleep(_PAUSE)
            client.replace(FILE, f"size = {old}", f"size = {new}")
            begin = time.perf_counter()
            client.hints_with(FILE, hint(new))
            bare.append(milliseconds(begin))
            old = new
    in_vscode, bare = in_vscode[_WARM_UPS:], bare[_WARM_UPS:]
    added = [ours - theirs for ours, theirs in zip(in_vscode, bare, strict=True)]
    return [
        Figure("a key → hints, in VS Code", "ms", in_vscode, bare, "bare client"),
        Figure("what VS Code adds to that", "ms", added, goals=[Goal(100)]),
    ]


def hint(size: int) -> str:
    """The hint of the line that the size is used in."""
    return f": f32[8,{size}]"


def sizes(count: int) -> Iterator[tuple[int, int]]:
    """Sizes of three digits that were not there before (26 at most), each by one key: the place of
    its digit from the right.
    """
    size = 100
    for number in range(count):
        place = number // 9
        size += 10**place
        yield place, size


def _type(page: Page, place: int, size: int) -> float:
    """Put one digit for another, which is selected before the clock starts."""
    page.keyboard.press("End")
    for _ in range(place):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    page.evaluate(_WATCH, [ACTIVE, hint(size)])
    page.keyboard.press(str(size)[-1 - place])
    took: float = page.evaluate("() => window.drawn")
    return took


def activations(server: CodeServer, browser: Browser, folder: Path, runs: int) -> list[Figure]:
    """The extension host's time for our extension, and for one of two kilobytes that starts beside
    it.
    """
    ours: list[float] = []
    other: list[float] = []
    for _ in range(runs // 2):
        with window(browser, server.port, folder, folder / FILE) as editor:
            editor.sees("table: f32[8,")
            activation = Activation(editor)
            ours.append(activation.of("jaxsight.jaxsight"))
            other.append(activation.of("ms-python.python"))
    return [
        Figure("activation", "ms", ours, other, "an extension of 2 KiB", [Goal(150)]),
    ]


def openings(
    server: CodeServer, browser: Browser, folder: Path, runs: int, python: str, scratch: Path
) -> list[Figure]:
    """From the first Python file of a window, drawn, to its shapes.

    The file is opened in a window that is there, of a folder that VS Code sees for the first time,
    or comes up together with its window, whose own start is then part of the time. The baseline is
    a Python that imports JAX, traces and prints; of a whole window, what VS Code needs to show the
    file is part of it.
    """
    opened: list[float] = []
    plain: list[float] = []
    for _ in range(runs // 2):
        with window(browser, server.port, folder) as editor:
            time.sleep(SETTLE)
            editor.page.evaluate(FIRST_HINT, EXPECTED)
            editor.open(FILE)
            drawn, shown, _ = editor.page.evaluate("() => window.firstHint")
            opened.append(shown - drawn)
        begin = time.perf_counter()
        subprocess.run([python, "-c", PLAIN], check=True, stdout=subprocess.DEVNULL)
        plain.append(milliseconds(begin))
    name = "a new folder's first file → shapes"
    first = Figure(name, "ms", opened[1:], plain[1:], "python -c", [Goal(factor=1.5)])
    measured = list(starts(server, browser, folder, runs // 2, python, scratch))
    return [first, *figures(measured)]


# Whether a hint is drawn anywhere in the window.
_ANY_HINT = """
() => [...document.querySelectorAll('.view-lines')]
  .some((lines) => lines.textContent.replace(/\\u00a0/g, ' ').includes(': f32['))
"""


def installations(browser: Browser, scratch: Path, python: str) -> list[Figure]:
    """From the installation of the .vsix into a VS Code without extensions to the first hint in a
    file of a copy of optax, which has no example inputs: its server and a window start, the lens
    *show shapes…* is drawn and clicked.
    """
    find = "import optax; print(optax.__path__[0])"
    optax = subprocess.run([python, "-c", find], check=True, capture_output=True, text=True)
    lens: list[float] = []
    shown: list[float] = []
    for number in range(_INSTALLATIONS):
        folder = make(
            scratch / f"copy{number}",
            {},
            python=python,
            **{"jaxsight.proposeInputs": True, "jaxsight.examplesAssumed": False},
        )
        shutil.copytree(optax.stdout.strip(), folder / "optax")
        file = folder / "optax" / "losses" / "_regression.py"
        begin = time.perf_counter()
        with (
            code_server(scratch / f"code{number}") as server,
            window(browser, server.port, folder, file) as editor,
        ):
            editor.page.set_viewport_size({"width": 1280, "height": 1600})
            link = editor.page.locator(".codelens-decoration a", has_text="show shapes…").first
            link.wait_for()
            lens.append(milliseconds(begin) / 1000)
            link.click()
            editor.page.wait_for_function(_ANY_HINT)
            shown.append(milliseconds(begin) / 1000)
    return [
        Figure("install the .vsix → a lens", "s", lens),
        Figure("install the .vsix → the first hint", "s", shown, goals=[Goal(60)]),
    ]


class Activation:
    """What the extension host did in a window for each extension, in milliseconds."""

    def __init__(self, editor: Window) -> None:
        editor.command("Stopwatch: Loading of Extensions")
        told = editor.toast("Loading: ").inner_text()
        self._loading = {name: float(took) for name, took in _LOADING.findall(told)}
        editor.page.set_viewport_size({"width": 1600, "height": 6000})
        editor.command("Developer: Startup Performance")
        self._rows = editor.sees("| jaxsight.jaxsight ", "| ms-python.python ")

    def of(self, extension: str) -> float:
        """Running the main module, and the call of `activate`."""
        row = next(row for row in self._rows if f"| {extension} " in row)
        return self._loading[extension] + int(row.split("|")[_CALL])


if __name__ == "__main__":
    main()
