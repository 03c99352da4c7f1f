"""Compilers are installed with pip, or leave nothing and say why."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path

import pytest

from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.installation import InstallError, install, origin
from tests.compiler.packages import local_index


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for compilers, and one of packages."""
    for name, value in local_index(tmp_path / "index").items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "compilers"
    monkeypatch.setenv("JAXSIGHT_COMPILERS", str(folder))
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_compiler_has_the_users_jax_and_its_plugin(home: Path) -> None:
    jax = importlib.metadata.version("jax")
    steps: list[str] = []
    made = install("cuda", jax, sys.executable, lambda step, _: steps.append(step))
    assert environments.installed("cuda") == [made]
    assert (made.jax, made.plugin) == (jax, f"jax-cuda13-plugin {jax}")
    assert Path(made.folder).parent == home
    assert list(dict.fromkeys(steps)) == [
        f"creating an environment in {made.folder}",
        f"installing jax=={jax} (downloads about 290 MB in total)",
        "installing the cuda compiler",
    ]
    again: list[str] = []
    assert install("cuda", jax, sys.executable, lambda step, _: again.append(step)) == made
    assert again == []


def program(folder: Path, script: str) -> str:
    """A command that stands for a Python interpreter: it is version 3.11."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\n[ "$1 $2" = "-I -c" ] && echo py3.11 && exit\n{script}\n')
    path.chmod(0o755)
    return str(path)


class Enough(Exception):
    """Somebody cancels."""


def test_what_is_cancelled_ends_and_leaves_nothing(home: Path, tmp_path: Path) -> None:
    # The second process is what pip would start; both write until they are ended.
    python = program(
        tmp_path,
        f'mkdir -p "$4/bin"; sleep 100 & echo $! > {tmp_path}/inner; echo $$ > {tmp_path}/outer; wait',
    )

    def progress(step: str, megabytes: int) -> None:
        if (tmp_path / "outer").exists() and (tmp_path / "outer").read_text():
            raise Enough

    with pytest.raises(Enough):
        install("cuda", "0.12.0", python, progress)
    assert [path.suffix for path in home.iterdir()] == [".lock"]
    for name in ("inner", "outer"):
        assert not is_alive(int((tmp_path / name).read_text()))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # nobody collects the orphans of a container


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "no space is left on the disk",
        ),
        (
            "The virtual environment was not created because ensurepip is not available.",
            r"this Python has no `venv` or `pip` \(Debian: python3-venv\)",
        ),
        ("/usr/bin/python: No module named venv", "this Python has no `venv` or `pip`"),
        ("something else", "something else"),
    ],
)
def test_a_failure_is_told_in_one_clause(
    home: Path, tmp_path: Path, printed: str, said: str
) -> None:
    python = program(tmp_path, f'mkdir -p "$4/bin"; echo "{printed}" >&2; exit 1')
    with pytest.raises(InstallError, match=f"failed to create the environment: {said}"):
        install("tpu", "0.12.0", python, lambda *_: None)
    assert [path.suffix for path in home.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "pypi.org"),
        ("https://me:secret@packages.example:8080/simple", "packages.example"),
        ("file:///srv/packages", "/srv/packages"),
    ],
)
def test_the_origin_is_where_pip_looks_without_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str, said: str
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", url)
    assert origin(sys.executable) == said
