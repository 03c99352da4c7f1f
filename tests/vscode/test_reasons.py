"""Why nothing is shown, and what helps: what the extension makes of what a server says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator

from tests.vscode import stand_in_server
from tests.vscode.code_server import CodeServer
from tests.vscode.project import FUSION, make
from tests.vscode.window import Window, window

pytestmark = pytest.mark.slow

FILE = {
    "target": "cpu",
    "problem": "",
    "detail": "",
    "functions": 3,
    "traced": 1,
    "usesJax": True,
    "why": "",
    "whyDetail": "",
    "usingJax": 3,
    "shown": 2,
}
ROOT = {"state": "ready", "detail": "", "python": "/p/python", "reason": "tests", "jax": "0.12"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    folder = tmp_path_factory.mktemp("reasons") / "project"
    stand_in = folder.parent / "python"
    setting = {"jaxsight.serverPython": str(stand_in)}
    make(folder, {"fusion.py": FUSION}, python=python, **setting)
    script = f"""#!/bin/sh
case "$*" in
    *start.py*) exec "{python}" "{stand_in_server.__file__}" "{folder.parent}" ;;
    *) exec "{python}" "$@" ;;
esac
"""
    stand_in.write_text(script, encoding="utf-8")
    stand_in.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def editor(server: CodeServer, browser: Browser, folder: Path) -> Iterator[Window]:
    with window(browser, server.port, folder, folder / "fusion.py") as opened:
        yield opened


def say(folder: Path, method: str, **params: object) -> None:
    with (folder.parent / "said.jsonl").open("a", encoding="utf-8") as said:
        said.write(json.dumps({"method": method, "params": params}) + "\n")


def say_status(folder: Path, **changes: object) -> None:
    params = {"root": folder.as_uri(), **ROOT, **changes}
    say(folder, "jaxsight/status", **params)


def say_file(folder: Path, **changes: object) -> None:
    params = {"uri": (folder / "fusion.py").as_uri(), **FILE, **changes}
    say(folder, "jaxsight/fileStatus", **params)


def menu(editor: Window) -> Locator:
    """The rows of the list that a click on our item of the status bar opens."""
    rows = editor.page.locator(".quick-input-list .monaco-list-row")
    item = editor.page.locator(".statusbar-item[id*=jaxsight] a").first
    editor.until_shown(item.click, rows.first)
    return rows


@pytest.mark.parametrize(
    ("why", "shown", "remedy"),
    [
        ("module `datasets` not found", "module datasets not found", "Interpreter"),
        ("modules `a` and `b` not found", "modules a and b not found", "Interpreter"),
        ("no example inputs for 6 functions", "for 6 functions", "Example inputs"),
        ("6 functions cannot be traced: KeyError: 'x'", "cannot be traced", "Show log"),
    ],
)
def test_the_status_bar_says_why_nothing_is_shown_and_leads_to_what_helps(
    editor: Window, folder: Path, why: str, shown: str, remedy: str
) -> None:
    say_status(folder)
    say_file(folder, shown=0, why=why, whyDetail=f"All of it: {why}.")
    told = editor.bar(shown)
    assert told.startswith("jaxsight: jaxsight: ")
    assert f"All of it: {why}." in told
    rows = menu(editor)
    rows.first.filter(has_text=remedy).filter(has_text=shown).wait_for()
    editor.leave()


def test_a_reason_of_some_functions_is_no_alarm(editor: Window, folder: Path) -> None:
    say_file(folder, why="no example inputs for 1 of 3 functions", whyDetail="`f` has none.")
    assert "`f` has none." in editor.bar("jaxsight: cpu")


def test_without_an_interpreter_with_jax_another_one_is_offered(
    editor: Window, folder: Path
) -> None:
    detail = "/home/somebody/.venv/bin/python (Python 3.12.1) has no jax. Install JAX there, or …"
    say_status(folder, state="failed", detail=detail)
    assert detail in editor.bar("(Python 3.12.1) has no jax")
    menu(editor).first.filter(has_text="Interpreter").wait_for()
    editor.leave()
    say_status(folder)


def test_what_runs_long_is_told_and_can_be_stopped(editor: Window, folder: Path) -> None:
    waits = "Tracing f: running `import slow`… 12 s"
    say_status(folder, state="busy", detail=waits)
    editor.bar(waits)
    menu(editor).filter(has_text="Stop").filter(has_text="import slow").wait_for()
    editor.pick("Stop")
    asked = folder.parent / "asked.txt"
    editor.until(lambda: asked.exists() and "jaxsight.restart" in asked.read_text(), "no restart")
    say_status(folder)


def test_a_long_message_opens_in_a_document(editor: Window, folder: Path) -> None:
    message = "attention cannot be inverted: dot_general is invertible for a permutation of axes "
    message += "and for a square matrix that is known and regular, but `scores` is neither"
    say(folder, "window/showMessage", type=2, message=message)
    toast = editor.toast("attention cannot be inverted")
    assert "permutation" not in toast.inner_text()
    toast.get_by_role("button", name="Show Details").click()
    editor.sees("`scores` is neither")
    editor.page.keyboard.press("Control+F4")


def test_a_short_message_is_a_toast_alone(editor: Window, folder: Path) -> None:
    say(folder, "window/showMessage", type=3, message="there is no function f")
    toast = editor.toast("there is no function f")
    assert toast.get_by_role("button", name="Show Details").count() == 0
