"""A folder that nobody has trusted yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.vscode.code_server import CodeServer, code_server
from tests.vscode.project import FUSION, SHAPES, make
from tests.vscode.window import Window, window

pytestmark = pytest.mark.slow

MODULE = '''\
from pathlib import Path

FACTOR = Path(__file__).with_name("it_ran").write_text("2")


def doubled(x):
    """
    Example inputs:
        x: f32[3]
        y: f32[3]
    """
    result = x * FACTOR
    return result
'''


# What a function is compiled for where its project asks for another machine.
REMOTE = """\
[tool.jaxsight]
target = "ssh://far.example/cuda:h100"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    """A folder as somebody may publish it: wherever an interpreter can be named, one of its own
    is.
    """
    folder = tmp_path_factory.mktemp("trust") / "project"
    make(
        folder,
        {"module.py": MODULE},
        python=planted(folder / "chosen", python),
        settings=SHAPES,
        **{
            "jaxsight.python": planted(folder / "setting", python),
            "jaxsight.serverPython": planted(folder / "server", python),
        },
    )
    planted(folder / ".venv" / "bin", python)
    (folder / ".venv" / "pyvenv.cfg").touch()
    return folder


def planted(folder: Path, python: str) -> str:
    """Put an interpreter into a folder, which makes a file beside itself when it runs."""
    folder.mkdir(parents=True)
    return program(folder / "python", f'touch "{folder}/it_ran"\nexec "{python}" "$@"')


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an `ssh` that reaches nobody, and leaves a file when it is run."""
    folder = tmp_path_factory.mktemp("commands")
    program(folder / "ssh", f'touch "{folder}/it_ran"\nexit 255')
    return folder


@pytest.fixture(scope="module")
def cautious(
    tmp_path_factory: pytest.TempPathFactory, ssh: Path, folder: Path
) -> Iterator[CodeServer]:
    scratch = tmp_path_factory.mktemp("cautious")
    writable = {"JAXSIGHT_WRITABLE": str(folder)}  # where interpreters leave their marks
    with code_server(scratch, asks_for_trust=True, commands=ssh, variables=writable) as running:
        yield running


@pytest.fixture
def editor(cautious: CodeServer, browser: Browser, folder: Path) -> Iterator[Window]:
    with window(browser, cautious.port, folder, folder / "module.py") as opened:
        yield opened


def test_nothing_of_an_untrusted_folder_runs_until_it_is_trusted(
    editor: Window, folder: Path, python: str, cautious: CodeServer
) -> None:
    editor.status("no code runs until you trust this workspace")
    # What the text alone tells is served, so the server has read the file.
    editor.until(lambda: editor.squiggles("error") + editor.squiggles("warning"), "no finding")
    assert not list(folder.rglob("it_ran"))
    assert not cautious.processes(python)

    trust(editor)
    editor.open("module.py")
    editor.replace("        |y|: f32[3]", "# y")
    editor.sees("result: f32[3] = ")
    assert (folder / "it_ran").exists()
    assert (folder / "setting" / "it_ran").exists()


def test_nothing_leaves_a_trusted_folder_before_that_is_allowed(
    cautious: CodeServer,
    browser: Browser,
    ssh: Path,
    python: str,
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "project", {"fusion.py": FUSION}, python=python, settings=REMOTE)
    with window(browser, cautious.port, folder, folder / "fusion.py") as editor:
        trust(editor)
        editor.open("fusion.py")
        question = editor.toast("far.example")
        assert "StableHLO with its constants leaves this machine" in question.inner_text()
        assert not (ssh / "it_ran").exists()
        question.get_by_role("button", name="No", exact=True).click()
        editor.sees("waits for approval")
        assert not (ssh / "it_ran").exists()

        editor.command("jaxsight: Review Pending Trust")
        editor.toast("far.example").get_by_role("button", name="Allow").click()
        editor.until((ssh / "it_ran").exists, "the host is not asked")


def trust(editor: Window) -> None:
    """Trust the workspace, as people do."""
    editor.command("Workspaces: Manage Workspace Trust")
    editor.page.get_by_role("button", name="Trust", exact=True).first.click()
