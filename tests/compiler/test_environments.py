"""Whose compilers run: what another user could have planted is never started, and what is missing
costs no answer.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxsight.workers.compilation import installation
from jaxsight.workers.compilation.environments import (
    CompilerEnvironment,
    installed,
)
from jaxsight.workers.compilation.installation import install

SERVER = Path(__file__).parents[2] / "server"
MODEL = '''\
import jax.numpy as jnp

def total(x):
    """
    Example inputs:
        x: f32[4096]
    """
    return jnp.sum(x * 2)
'''


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "compilers"
    folder.mkdir()
    monkeypatch.setenv("JAXSIGHT_COMPILERS", str(folder))
    return folder


def made(home: Path, name: str = "cuda-0.12.0-py3.12", **changes: object) -> Path:
    """An environment that is whole, as far as files tell."""
    folder = home / name
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    known = {"platform": "cuda", "python": str(folder / "bin" / "python"), "jax": "0.12.0"}
    (folder / "jaxsight.json").write_text(json.dumps({**known, "folder": str(folder), **changes}))
    return folder


def test_an_environment_of_ours_is_found(home: Path) -> None:
    folder = made(home)
    assert installed("cuda") == [
        CompilerEnvironment("cuda", str(folder / "bin" / "python"), "0.12.0", str(folder))
    ]


def test_a_record_names_no_program_and_no_folder_elsewhere(home: Path, tmp_path: Path) -> None:
    folder = made(home, python="/tmp/evil", folder=str(tmp_path))
    (found,) = installed("cuda")
    assert (found.python, found.folder) == (str(folder / "bin" / "python"), str(folder))
    installation.remove(found)
    assert home.exists()
    assert not folder.exists()


BROKEN: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_text(""),
    "a list": lambda path: path.write_text("[]"),
    "another version's": lambda path: path.write_text('{"platform": "cuda"}'),
    "numbers": lambda path: path.write_text('{"platform": "cuda", "jax": 12, "python": 1}'),
    "deep": lambda path: path.write_text("[" * 30_000),
    "gigantic": lambda path: os.truncate(path, 3 * 2**30),
    "no UTF-8": lambda path: path.write_bytes(b"\xff"),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a device": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_record_is_as_good_as_none(home: Path, broken: str) -> None:
    BROKEN[broken](made(home) / "jaxsight.json")
    assert installed("cuda") == []


@pytest.mark.parametrize("part", [".", "bin", "..", "jaxsight.json"])
def test_compilers_that_others_could_have_written_are_not_used(
    home: Path, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = made(home)
    (folder / part).chmod(0o777)
    with caplog.at_level(logging.WARNING):
        assert installed("cuda") == []
    assert f"ignoring the compilers in {folder}" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("part", [".", "bin", "..", "jaxsight.json"])
def test_compilers_of_another_user_are_not_used(home: Path, part: str) -> None:
    folder = made(home)
    os.chown(folder / part, 65534, 65534)
    assert installed("cuda") == []


def test_nothing_is_installed_where_others_can_write(home: Path) -> None:
    home.chmod(0o777)
    with pytest.raises(installation.InstallError, match=r"can be written by others \(mode 0777\)"):
        install("cuda", "0.12.0", sys.executable, lambda step, megabytes: None)
    assert list(home.iterdir()) == []


def test_a_pipe_in_the_place_of_the_lock_stops_nothing(home: Path) -> None:
    version = f"py{sys.version_info[0]}.{sys.version_info[1]}"
    os.mkfifo(home / f"cuda-0.12.0-{version}.lock")
    with pytest.raises(installation.InstallError, match="it is not a file"):
        install("cuda", "0.12.0", sys.executable, lambda step, megabytes: None)


def test_stand_ins_of_a_process_are_unpredictable_and_removed(tmp_path: Path) -> None:
    script = (
        "from jaxsight.compiler import stand_ins\nimport os\n"
        "print(stand_ins.folder(), oct(os.stat(stand_ins.folder()).st_mode)[-3:])"
    )
    environment = {**os.environ, "PYTHONPATH": str(SERVER), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", script]
    told = {
        subprocess.run(command, env=environment, text=True, check=True, capture_output=True).stdout
        for _ in range(2)
    }
    assert len(told) == 2
    assert all(
        line.startswith(f"{tmp_path}/jaxsight-") and line.endswith(" 700\n") for line in told
    )
    assert list(tmp_path.iterdir()) == []


def kernels(folder: Path, target: str, **environ: str) -> subprocess.CompletedProcess[str]:
    (folder / "model.py").write_text(MODEL)
    return subprocess.run(
        [sys.executable, "-m", "jaxsight", "kernels", "model.py:total", "--target", target],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SERVER), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.slow
def test_a_tool_planted_in_the_temporary_folder_is_not_run(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    planted = shared / f"jaxsight-no-cuda-{os.geteuid()}" / "bin" / "ptxas"
    planted.parent.mkdir(parents=True)
    shared.chmod(0o1777)
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o755)
    done = kernels(
        tmp_path, "cuda:h100", TMPDIR=str(shared), XDG_CACHE_HOME=str(tmp_path / "cache")
    )
    assert done.returncode == 0, done.stderr
    assert "total: 1 kernel" in done.stdout
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize("home", ["missing", "read-only", "full of junk"])
def test_kernels_need_no_home(tmp_path: Path, home: str) -> None:
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "jaxsight").write_text("a file")
    # Root may write anywhere but there.
    folder = {"missing": "/proc/none", "read-only": "/proc", "full of junk": str(tmp_path)}[home]
    nowhere = {"HOME": folder, "XDG_CACHE_HOME": "", "XDG_STATE_HOME": ""}
    done = kernels(tmp_path, "cpu", **nowhere)
    assert done.returncode == 0, done.stderr
    assert "total: 1 kernel" in done.stdout
    assert "Traceback" not in done.stderr
