"""The interpreter of a project: which one, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.projects.python_discovery import (
    InterpreterError,
    PythonInterpreter,
    choose,
    own_interpreter,
)


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def environment(folder: Path, python: str = "bin/python") -> Path:
    (folder / "pyvenv.cfg").parent.mkdir(parents=True, exist_ok=True)
    (folder / "pyvenv.cfg").write_text("")
    return program(folder / python)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repository" / "project"
    root.mkdir(parents=True)
    (root.parent / ".git").mkdir()
    return root


def test_the_ladder_from_the_top_down(root: Path, tmp_path: Path) -> None:
    setting = program(tmp_path / "set" / "python")
    editor = program(tmp_path / "editor" / "python")
    project = environment(root / ".venv")
    active = program(tmp_path / "active" / "bin" / "python")
    conda = program(tmp_path / "conda" / "bin" / "python")
    own = PythonInterpreter("/own/python", "its own")
    path = program(tmp_path / "path" / "python3")
    environ = {
        "VIRTUAL_ENV": str(active.parents[1]),
        "CONDA_PREFIX": str(conda.parents[1]),
        "PATH": str(path.parent),
    }

    def chosen(setting: str = "", editor: str = "") -> tuple[str, str]:
        found = choose(str(root), setting, editor, environ, own=own)
        return found.path, found.reason

    assert chosen(str(setting), str(editor)) == (
        str(setting),
        f"the setting `jaxsight.python` ({setting})",
    )
    assert chosen("", str(editor)) == (str(editor), "the interpreter chosen in the editor")
    assert chosen() == (str(project), f"the project's environment `{root / '.venv'}`")
    (root / ".venv" / "pyvenv.cfg").unlink()
    assert chosen() == (str(active), "the activated environment (`VIRTUAL_ENV`)")
    del environ["VIRTUAL_ENV"]
    assert chosen() == (str(conda), "the activated environment (`CONDA_PREFIX`)")
    del environ["CONDA_PREFIX"]
    assert chosen() == ("/own/python", "its own")
    own = None
    assert chosen() == (str(path), "`python3` on `PATH`")
    environ.clear()
    with pytest.raises(InterpreterError, match=r"set `jaxsight\.python`"):
        chosen()


@pytest.mark.parametrize("name", ["venv", "env", ".venv"])
def test_an_environment_of_the_repository_above_is_the_projects(root: Path, name: str) -> None:
    python = environment(root.parent / name)
    assert choose(str(root), "", "", {}).path == str(python)


def test_an_environment_outside_the_repository_is_not(root: Path) -> None:
    environment(root.parents[1] / ".venv")
    with pytest.raises(InterpreterError):
        choose(str(root), "", "", {})


@pytest.mark.parametrize("place", ["bin/python", "bin/python3", "Scripts/python.exe"])
def test_environments_of_all_systems_are_read(root: Path, place: str) -> None:
    python = environment(root / ".venv", place)
    assert choose(str(root), "", "", {}).path == str(python)


def test_a_link_into_an_environment_is_not_followed(root: Path, tmp_path: Path) -> None:
    real = program(tmp_path / "real" / "python3.11")
    environment(root / ".venv").unlink()
    link = root / ".venv" / "bin" / "python"
    link.symlink_to(real)
    assert choose(str(root), "", "", {}).path == str(link)


@pytest.mark.parametrize("setting", ["tools/python", "./tools/python", "{root}/tools/python"])
def test_a_setting_may_be_relative_to_the_project(root: Path, setting: str) -> None:
    python = program(root / "tools" / "python")
    assert choose(str(root), setting.format(root=root), "", {}).path == str(python)


def test_a_setting_may_name_an_environment(root: Path) -> None:
    python = environment(root / "envs" / "jax")
    assert choose(str(root), "envs/jax", "", {}).path == str(python)


def test_a_setting_may_name_a_command(root: Path, tmp_path: Path) -> None:
    python = program(tmp_path / "bin" / "python3.13")
    assert choose(str(root), "python3.13", "", {"PATH": str(python.parent)}).path == str(python)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("python9", "`python9` is not a command on `PATH`"),
        ("gone/python", "`gone/python`.*gone/python does not exist"),
        ("./file", "`./file`.*file is not executable"),
    ],
)
def test_a_wrong_setting_is_an_error_and_not_passed_over(
    root: Path, setting: str, message: str
) -> None:
    environment(root / ".venv")
    (root / "file").write_text("")
    with pytest.raises(InterpreterError, match=message):
        choose(str(root), setting, "", {})


def test_an_editors_choice_that_is_gone_is_passed_over(root: Path) -> None:
    python = environment(root / ".venv")
    assert choose(str(root), "", str(root / "gone" / "python"), {}).path == str(python)


@pytest.mark.parametrize(
    ("chosen_by", "version"),
    [("variable", "3.11.9"), ("file", "3.12.10"), ("default", "3.13.1")],
)
def test_what_pyenv_would_start_is_found_without_it(
    root: Path, tmp_path: Path, chosen_by: str, version: str
) -> None:
    pyenv = tmp_path / "pyenv"
    for each in ("3.11.9", "3.12.2", "3.12.10", "3.13.1"):
        program(pyenv / "versions" / each / "bin" / "python")
    shim = program(pyenv / "shims" / "python3")
    (pyenv / "version").write_text("3.13.1\n")
    environ = {"PATH": str(shim.parent)}
    if chosen_by != "default":
        (root / ".python-version").write_text("3.12\n")
    if chosen_by == "variable":
        environ["PYENV_VERSION"] = "3.11.9"
    python = pyenv / "versions" / version / "bin" / "python"
    assert choose(str(root), "", "", environ) == PythonInterpreter(
        str(python), "`python3` on `PATH`"
    )


def test_pyenvs_system_version_is_what_comes_after_it_on_the_path(
    root: Path, tmp_path: Path
) -> None:
    shim = program(tmp_path / "pyenv" / "shims" / "python3")
    (tmp_path / "pyenv" / "versions").mkdir()
    (tmp_path / "pyenv" / "version").write_text("system\n")
    python = program(tmp_path / "usr" / "bin" / "python3")
    environ = {"PATH": f"{shim.parent}:{python.parent}"}
    assert choose(str(root), "", "", environ).path == str(python)


def test_the_own_interpreter_counts_where_jax_is_installed() -> None:
    own = own_interpreter()
    assert own is not None
    assert "itself" in own.reason
