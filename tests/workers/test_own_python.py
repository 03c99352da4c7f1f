"""Our own processes import nothing from the folder that they are started in, whoever starts them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxsight.wire.messages.compiling import Compile, NotCompiled
from jaxsight.workers.compilation import installation, remote
from jaxsight.workers.compilation.environments import CompilerEnvironment, DirectCompiler
from jaxsight.workers.importing import import_whole
from jaxsight.workers.limits import Limits
from jaxsight.workers.own_python import isolated, program, with_packages
from jaxsight_dataset.making.worker_process import WorkerProcess
from jaxsight_repro.emit.issue import information
from jaxsight_repro.running import run_command, run_file
from tests.trust.baits import NAMES, laid, programs, sprung

PATHS = ["", "%s:", ".:lib"]
"""Values of `PYTHONPATH` that have entries of whatever folder Python is started in."""


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture(params=PATHS, ids=repr)
def workspace(
    tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    """A hostile folder, which is the working folder."""
    folder = laid(tmp_path / "workspace", mark)
    laid(folder / "lib", mark)
    monkeypatch.chdir(folder)
    value = request.param.replace("%s", str(tmp_path / "mine"))
    monkeypatch.setenv("PYTHONPATH", value)
    monkeypatch.setenv("JAXSIGHT_COMPILERS", str(tmp_path / "compilers"))
    return folder


def worker(folder: Path) -> None:
    with WorkerProcess(sys.executable) as asked:
        assert "program" in asked.ask({"action": "survey", "spec": {"samples": 1}, "number": 0})


def compiler(folder: Path) -> None:
    with DirectCompiler(CompilerEnvironment("cpu", sys.executable, "")) as started:
        answer = started.compile(Compile(1, "cpu", "", complete=False))
    assert isinstance(answer, NotCompiled)  # an empty program


PROCESSES: dict[str, Callable[[Path], object]] = {
    "version of JAX": lambda folder: installation.installed_jax(sys.executable),
    "index of pip": lambda folder: installation.origin(sys.executable),
    "description of the system": lambda folder: information(sys.executable),
    "the guardian": lambda folder: run_command([sys.executable, "-I", "-c", "import json"]),
}


@pytest.mark.parametrize("process", PROCESSES)
def test_a_process_of_our_own_imports_nothing_of_the_working_folder(
    process: str, workspace: Path, mark: Path, tmp_path: Path
) -> None:
    PROCESSES[process](tmp_path)
    assert sprung(mark) == []


@pytest.mark.slow
@pytest.mark.parametrize("workspace", [":"], indirect=True, ids=repr)
@pytest.mark.parametrize("process", [worker, compiler])
def test_processes_with_jax_import_none_of_the_working_folder(
    process: Callable[[Path], None], workspace: Path, mark: Path, tmp_path: Path
) -> None:
    process(tmp_path)
    assert sprung(mark) == []


@pytest.mark.slow
@pytest.mark.parametrize("workspace", [":"], indirect=True, ids=repr)
def test_environments_are_made_without_modules_of_the_working_folder(
    workspace: Path, mark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(installation.InstallError):
        installation.install("cuda", "99.0", sys.executable, lambda step, size: None)
    assert sprung(mark) == []


def test_the_baits_are_sprung_by_processes_without_these_options(
    tmp_path: Path, mark: Path
) -> None:
    folder = laid(tmp_path / "workspace", mark, ["json", "pip"])
    subprocess.run([sys.executable, "-c", "import json"], cwd=folder, check=False)
    subprocess.run([sys.executable, "-m", "pip"], cwd=folder, check=False)
    assert sprung(mark) == ["json", "pip"]
    assert len(NAMES) == len(set(NAMES))


def test_a_repro_sees_its_folder_and_we_do_not(tmp_path: Path, mark: Path) -> None:
    folder = laid(tmp_path / "workspace", mark)
    file = folder / "repro.py"
    file.write_text("print('done')\n")
    ran = run_file(sys.executable, file)
    assert (ran.stdout, sprung(mark)) == ("done\n", [])
    (folder / "json.py").write_text("mine = 1\n")
    file.write_text("import json\nprint(json.mine)\n")
    assert run_file(sys.executable, file).stdout == "1\n"


def test_on_another_machine_nothing_of_the_folder_of_the_login_is_imported(
    tmp_path: Path, mark: Path
) -> None:
    login = laid(tmp_path / "login", mark)
    command = remote.command("host", {}, sys.executable)[-1]
    sent = remote.modules()
    subprocess.run(["/bin/sh", "-c", command], input=sent, cwd=login, check=False)
    assert sprung(mark) == []


async def test_a_whole_import_starts_without_modules_of_its_folder(
    tmp_path: Path, mark: Path
) -> None:
    from jaxsight.wire.messages.requests import NEW, Import

    folder = laid(tmp_path / "workspace", mark)
    file = folder / "model.py"
    await asyncio.to_thread(file.write_text, "x = 1\n")
    request = Import(NEW, str(file), "model", str(folder), ())
    await import_whole(sys.executable, request, limits=Limits(), variables={})
    assert not {"json", "base64", "traceback", "runpy"} & set(sprung(mark))


def test_absolute_folders_of_the_user_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("print('mine')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", str(tmp_path)]))
    own = with_packages(sys.executable, "-c", "import mine")
    assert own.environment["PYTHONPATH"] == str(tmp_path)
    done = subprocess.run(
        own.command, env=own.environment, cwd=own.folder, check=True, capture_output=True
    )
    assert done.stdout == b"mine\n"
    assert "PYTHONPATH" not in isolated(sys.executable).environment


@pytest.mark.parametrize("path", [".", "", "bin", ":"])
def test_programs_are_not_looked_up_in_the_working_folder(
    path: str, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = programs(tmp_path / "workspace", mark, "ssh", "git", "dot")
    programs(workspace / "bin", mark, "ssh", "git", "dot")
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PATH", path)
    assert [program(name) for name in ("ssh", "git", "dot")] == [None] * 3
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}{workspace}")
    assert program("git") == str(workspace / "git")
