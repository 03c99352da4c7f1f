"""What cloned repositories, folders above them and settings files tried, and got: `REVIEW`, section
6, and S8, S9 of section 12.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trust.baits import laid, sprung
from tests.trust.process import (
    FUNCTION,
    TRACED,
    answering,
    asked,
    decide,
    environment,
    findings_with,
    hover,
    hover_with,
    open_file,
    questions,
    run,
    server,
    spy,
    stored,
    variables,
    whole,
)

pytestmark = pytest.mark.slow

TRUST = "Trust this folder"


def ran(mark: Path) -> bool:
    """Whether the program that leaves this mark ran."""
    return mark.exists()


def open_to_all(folder: Path) -> None:
    """Let every user write to a folder."""
    folder.chmod(0o777)


def said(mark: Path) -> str:
    """What it was called with."""
    return mark.read_text()


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that is there once a program of an attacker ran."""
    return tmp_path / "ran"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository that was just cloned."""
    made = tmp_path / "cloned"
    (made / ".git").mkdir(parents=True)
    return made


@pytest.mark.parametrize("name", [".venv", "venv", "env"])
async def test_the_interpreter_of_a_cloned_repository_runs_only_after_its_user_agreed(
    tmp_path: Path, project: Path, mark: Path, name: str
) -> None:
    python = environment(project / name, mark)
    async with server(tmp_path, project) as client:
        open_file(client, project / "plain.py", "x = 1\n")
        await client.settled()
        assert not ran(mark)
        assert questions(client) == []
        open_file(client, project / "model.py")
        assert "not trusted" in await hover(client, project / "model.py")
        hints = await client.request("textDocument/inlayHint", whole(project / "model.py"))
        assert [hint["label"] for hint in hints] == ["not trusted"]
        (question,) = await asked(client)
        assert str(project) in question["message"]
        assert str(python) in question["message"]
        assert [each["title"] for each in question["actions"]] == ["No", TRUST, "Once"]
        assert not ran(mark)
        answering(client, TRUST)
        await run(client, "jaxsight.trust")
        await hover_with(client, project / "model.py", TRACED)
        assert ran(mark)
    assert stored(tmp_path)["folders"] == [str(project)]


@pytest.mark.parametrize("who", ["nobody", "everybody can write", "trusted"])
async def test_an_environment_above_the_folder_runs_only_if_that_folder_is_trusted_and_the_users(
    tmp_path: Path, project: Path, mark: Path, who: str
) -> None:
    environment(project / ".venv", mark)
    workspace = project / "packages" / "mine"
    workspace.mkdir(parents=True)
    decide(tmp_path, workspace if who == "nobody" else project)
    if who == "everybody can write":
        open_to_all(project)
    async with server(tmp_path, workspace) as client:
        open_file(client, workspace / "model.py")
        await hover_with(client, workspace / "model.py", TRACED)
        assert ran(mark) == (who == "trusted")


VERSIONS = [
    "../../../cloned/tools",
    "3.12.1/../../../../cloned/tools",
    "{project}/tools",
    "3.12\x1b[2J",
]


@pytest.mark.parametrize("version", VERSIONS, ids=repr)
async def test_a_python_version_names_versions_only(
    tmp_path: Path, project: Path, mark: Path, version: str
) -> None:
    spy(project / "tools" / "bin" / "python", mark)
    pyenv = tmp_path / "home" / ".pyenv"
    good = tmp_path / "good"
    spy(pyenv / "shims" / "python3", mark)
    spy(pyenv / "versions" / "3.12.1" / "bin" / "python", good)
    (pyenv / "version").write_text("3.12.1\n")
    (project / ".python-version").write_text(version.format(project=project))
    path = f"{pyenv / 'shims'}:/usr/bin:/bin"
    async with server(tmp_path, project, with_jax=False, environ={"PATH": path}) as client:
        answering(client, TRUST)
        open_file(client, project / "model.py")
        await hover_with(client, project / "model.py", TRACED)
    assert not ran(mark)
    assert ran(good)


@pytest.fixture
def ssh(tmp_path: Path, mark: Path) -> dict[str, str]:
    """Variables with which `ssh` leaves a mark and reaches nobody."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> "{mark}"\necho "no route" >&2\nexit 255\n')
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:/usr/bin:/bin"}


KERNELS: dict[str, Any] = {"inlayHints": {"kernels": True, "barriers": False}}


@pytest.mark.parametrize("where", ["pyproject", "editor"])
@pytest.mark.parametrize("answer", ["Allow", "No", None])
async def test_a_target_on_another_machine_is_reached_only_after_its_user_agreed(
    tmp_path: Path, project: Path, mark: Path, ssh: dict[str, str], answer: str | None, where: str
) -> None:
    decide(tmp_path, project)
    options = dict(KERNELS)
    if where == "pyproject":
        (project / "pyproject.toml").write_text('[tool.jaxsight]\ntarget = "ssh://attacker"\n')
    else:
        options["target"] = "ssh://attacker"
    async with server(tmp_path, project, environ=ssh, **options) as client:
        file = project / "model.py"
        open_file(client, file)
        assert "waits for your approval" in await hover_with(client, file, TRACED)
        (question,) = await asked(client)
        assert "attacker" in question["message"]
        assert "StableHLO with its constants" in question["message"]
        assert [each["title"] for each in question["actions"]] == ["No", "Allow"]
        assert not ran(mark)
        answering(client, answer)
        await run(client, "jaxsight.trust", str(project))
        await asked(client, 2)
        if answer == "Allow":
            await hover_with(client, file, "no route")
            assert "attacker" in said(mark)
            approved = {"folder": str(project), "what": "ssh://attacker"}
            assert stored(tmp_path)["approvals"] == [approved]
        else:
            assert "waits for your approval" in await hover(client, file)
            assert not ran(mark)


async def test_a_host_that_is_approved_runs_no_other_command_of_a_project(
    tmp_path: Path, project: Path, mark: Path, ssh: dict[str, str]
) -> None:
    decide(tmp_path, project, approvals={project: "ssh://cluster"})
    (project / "pyproject.toml").write_text(
        '[tool.jaxsight]\ntarget = "ssh://cluster"\n'
        '[tool.jaxsight.compiler]\nremotePython = "/tmp/planted"\n'
    )
    async with server(tmp_path, project, environ=ssh, **KERNELS) as client:
        file = project / "model.py"
        open_file(client, file)
        assert "waits for your approval" in await hover_with(client, file, TRACED)
        (question,) = await asked(client)
        assert "cluster over ssh with /tmp/planted" in question["message"]
        assert not ran(mark)


@pytest.mark.parametrize("answer", ["Cancel", None])
async def test_an_installation_runs_no_module_of_the_folder_that_the_server_is_in(
    tmp_path: Path, mark: Path, answer: str | None
) -> None:
    evil, good = laid(tmp_path / "evil", mark), tmp_path / "good"
    good.mkdir()
    decide(tmp_path, good)
    async with server(tmp_path, evil, good, cwd=evil) as client:
        open_file(client, good / "model.py")
        answering(client, answer)
        file = (good / "model.py").as_uri()
        await run(client, "jaxsight.installTarget", "cuda", file)
        (question,) = await asked(client)
        assert "Install" in question["message"]
    assert sprung(mark) == []


@pytest.mark.parametrize(
    "command",
    [
        ("dataset", "generate", "out", "--samples", "1", "--format", "jsonl"),
        ("targets",),
        ("targets", "install", "cuda"),
        ("kernels", "{good}/model.py:f", "--target", "cpu"),
    ],
    ids=" ".join,
)
def test_a_command_runs_no_module_of_the_folder_that_it_is_given_in(
    tmp_path: Path, mark: Path, command: tuple[str, ...]
) -> None:
    evil, good = laid(tmp_path / "evil", mark), tmp_path / "good"
    good.mkdir()
    (good / "model.py").write_text(FUNCTION)
    arguments = [part.format(good=good) for part in command]
    done = jaxsight(tmp_path, *arguments, "--python", sys.executable, cwd=evil, PIP_NO_INDEX="1")
    assert "Traceback" not in done.stderr
    assert sprung(mark) == []


async def test_a_contract_on_another_machine_waits_and_holds_nothing_else_back(
    tmp_path: Path, project: Path, mark: Path, ssh: dict[str, str]
) -> None:
    decide(tmp_path, project)
    text = FUNCTION.replace("f32[4]\n", "f32[4]\n    Expect (ssh://attacker): kernels <= 3\n", 1)
    text += '\n\ndef g(x):\n    """\n    Example inputs:\n        x: f32[3]\n    """\n    return x.nothing\n'
    file = project / "model.py"
    async with server(tmp_path, project, environ=ssh) as client:
        open_file(client, file, text)
        found = await findings_with(client, file, 2)
        await asked(client)
        assert any("nothing" in message for message in found)
        (contract,) = [message for message in found if "contract" in message]
        assert contract == "contract cannot be checked: not compiled for cuda@attacker"
        assert not ran(mark)


def test_the_terminal_passes_over_settings_above_what_it_was_given(
    tmp_path: Path, project: Path, mark: Path
) -> None:
    spy(project / "tool", mark)
    (project / "pyproject.toml").write_text('[tool.jaxsight]\npython = "./tool"\n')
    file = project / "inner" / "model.py"
    file.parent.mkdir()
    file.write_text(FUNCTION)

    def show(*options: str) -> subprocess.CompletedProcess[str]:
        return jaxsight(tmp_path, "show", f"{file}:f", *options)

    done = show()
    assert TRACED in done.stdout
    assert not ran(mark)
    (note,) = [line for line in done.stderr.splitlines() if "not trusted" in line]
    assert note.startswith("note: ")
    assert f"jaxsight trust {project}" in note
    assert any(
        line.startswith(f"note: Python: {sys.executable}") for line in done.stderr.splitlines()
    )
    assert jaxsight(tmp_path, "trust", str(project)).returncode == 0
    done = show("--json")
    assert ran(mark)
    assert json.loads(done.stdout)["python"]["path"] == str(project / "tool")
    assert "not trusted" not in done.stderr
    mark.unlink()
    project.chmod(0o777)
    assert show().returncode == 0
    assert not ran(mark)


def jaxsight(
    tmp_path: Path, *arguments: str, cwd: Path | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run the command as a user who has decided nothing, in their home by default."""
    return subprocess.run(
        [sys.executable, "-m", "jaxsight", *arguments],
        cwd=cwd or tmp_path / "home",
        env={**variables(tmp_path, **environ), "COLUMNS": "200"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
