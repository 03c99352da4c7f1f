"""`jaxsight trust`: what a person decides in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.workers.confinement.start import held
from tests.trust.process import home, store, stored
from tests.trust.test_attacks import jaxsight


@pytest.mark.slow
def test_decisions_are_made_listed_and_taken_back(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert jaxsight(tmp_path, "trust", "--list").stdout == "no folder is trusted\n"
    said = jaxsight(tmp_path, "trust", str(link)).stdout.splitlines()
    assert said == [f"{folder} is trusted", f"note: {held()}"]
    allow = ("--allow", "ssh://host/cuda:h100", "--allow", "./tool")
    done = jaxsight(tmp_path, "trust", str(folder), *allow)
    tool = home(tmp_path) / "tool"
    assert done.stdout == f"{folder} may use ssh://host\n{folder} may use {tool}\n"
    listed = jaxsight(tmp_path, "trust", "--list").stdout.splitlines()
    assert listed == [
        f"{folder} is trusted",
        f"{folder} may use {tool}",
        f"{folder} may use ssh://host",
    ]
    done = jaxsight(tmp_path, "trust", str(folder), "--forget", "--allow", "ssh://host")
    assert done.stdout == f"{folder} may no longer use ssh://host\n"
    assert stored(tmp_path)["folders"] == [str(folder)]
    inner = folder / "inner"
    inner.mkdir()
    done = jaxsight(tmp_path, "trust", "--forget", cwd=inner)
    assert f"note: still trusted as part of {folder}" in done.stdout
    assert jaxsight(tmp_path, "trust", str(folder), "--forget").returncode == 0
    assert stored(tmp_path) == {"version": 1, "folders": [], "approvals": []}


def test_what_cannot_be_decided_is_one_clear_line(tmp_path: Path) -> None:
    done = jaxsight(tmp_path, "trust", "no\x1b[2Jwhere")
    assert (done.returncode, done.stderr) == (2, "error: no such folder: no\\x1b\\x5b2Jwhere\n")
    done = jaxsight(tmp_path, "trust", HOME="/proc/nobody")
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot store the decision")
    assert "Traceback" not in done.stderr


def test_a_list_says_that_the_file_is_ignored(tmp_path: Path) -> None:
    assert jaxsight(tmp_path, "trust").returncode == 0
    store(tmp_path).chmod(0o666)
    done = jaxsight(tmp_path, "trust", "--list")
    assert done.stdout == "no folder is trusted\n"
    assert "ignored: other users can write to it" in done.stderr
