"""A second check traces only what may have another result: the model below says when it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.published import hold
from tests.terminal import SERVER

MODEL = '''\
import os
from pathlib import Path

import jax.numpy as jnp

from helper import scale

print("running the model")
HERE = Path(__file__).parent
SIZE = int((HERE / "size.txt").read_text())
if (HERE / "extra.txt").exists():
    SIZE = 5
SIZE += int(os.environ.get("MORE", 0))


def layer(x):
    """
    Example inputs:
        x: f32[8]
    """
    return scale(x) + jnp.ones(SIZE)


def called(x):
    return jnp.dot(x, x)
'''
pytestmark = pytest.mark.slow

FILES = {
    "model.py": MODEL,
    "helper.py": "def scale(x):\n    return 2 * x\n",
    "size.txt": "8",
    "pyproject.toml": "[tool.jaxsight]\n",
    "unrelated.txt": "",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with an environment of its own, which has the packages of this one."""
    root = tmp_path_factory.mktemp("again")
    for name, text in FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    venv.create(root / ".venv", symlinks=True)
    installed = sysconfig.get_path("purelib")
    (packages(root) / "these.pth").write_text(f"{installed}\n", encoding="utf-8")
    check(root)
    return root


def packages(root: Path) -> Path:
    (folder,) = root.glob(".venv/lib/python3*/site-packages")
    return folder


def check(
    root: Path, *options: str, text: str | None = None, **environ: str
) -> tuple[bool, list[object]]:
    """Check the model; return whether it ran, and the findings."""
    inherited = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = hold(
        subprocess.run(
            [
                sys.executable,
                "-m",
                "jaxsight",
                "check",
                "--output-format=json",
                *(options or ["model.py"]),
            ],
            cwd=root,
            env={
                **inherited,
                "PYTHONPATH": str(SERVER),
                "XDG_CACHE_HOME": f"{root}-cache",
                **environ,
            },
            input=text,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )
    )
    assert done.returncode in (0, 1), done.stderr
    return "running the model" in done.stderr, json.loads(done.stdout)


def written(name: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(text, encoding="utf-8")


SHORT = written("size.txt", "7")
CALLS = "import jax.numpy as jnp\nfrom model import called\n\ndef test_it():\n    called(jnp.ones("
RECORDED = {
    "version": 1,
    "functions": [],
}
CHANGES: dict[str, Callable[[Path], object]] = {
    "its text": written("model.py", f"{MODEL}\n\nVERSION = 2\n"),
    "a module that it imports": written("helper.py", "def scale(x):\n    return 3 * x\n"),
    "a file that it reads": SHORT,
    "a file that it looks for": written("extra.txt", ""),
    "a program that calls its functions": written("test_model.py", f"{CALLS}3))\n"),
    "settings": written("pyproject.toml", '[tool.jaxsight]\nselect = ["JX4"]\n'),
    "a recording": lambda root: (
        (root / ".jaxsight").mkdir(),
        (root / ".jaxsight" / "recorded.json").write_text(json.dumps(RECORDED)),
    ),
    "an installed package": lambda root: (packages(root) / "another").mkdir(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_is_traced_again_after_a_change_of(project: Path, change: str) -> None:
    check(project)
    CHANGES[change](project)
    assert check(project)[0] is True


@pytest.mark.parametrize(
    ("options", "environ"),
    [
        (("model.py", "--select", "JX1"), {}),
        (("model.py", "--target", "cpu"), {}),
        (("model.py", "--inputs", "written"), {}),
        (("model.py",), {"MORE": "1"}),
        (("model.py",), {"XLA_FLAGS": "--xla_cpu_enable_fast_math=false"}),
    ],
)
def test_each_way_to_check_has_its_own_results(
    project: Path, options: tuple[str, ...], environ: dict[str, str]
) -> None:
    ran, found = check(project, *options, **environ)
    assert ran
    assert check(project, *options, **environ) == (False, found)


def test_what_changes_no_result_runs_nothing(project: Path) -> None:
    found = check(project)[1]
    written("unrelated.txt", "more")(project)
    for name in FILES:
        os.utime(project / name)
    assert check(project, TERM="dumb", COLUMNS="40") == (True, found)  # the data have another time
    assert check(project, TERM="xterm", COLUMNS="90") == (False, found)


def test_it_runs_when_it_is_told_to(project: Path) -> None:
    assert check(project)[0] is False
    assert check(project, "model.py", "--no-cache")[0] is True
    assert check(project, "model.py", "--verify-import")[0] is True
    assert check(project, "-", "--stdin-filename", "model.py", text=MODEL)[0] is True
    assert check(project, "-", "--stdin-filename", "model.py", text=MODEL)[0] is True


def test_what_ends_its_tracer_is_traced_again(tmp_path: Path) -> None:
    ending = MODEL.replace("return scale(x)", "os.kill(os.getpid(), 9)\n    return scale(x)")
    for name, text in {**FILES, "model.py": ending}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    first = check(tmp_path)
    assert first[0]
    assert check(tmp_path) == first


def notebook(*cells: tuple[str, str]) -> str:
    made = [{"cell_type": kind, "source": source, "metadata": {}} for kind, source in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_cells_are_those_of_the_notebook_as_it_is_now(tmp_path: Path) -> None:
    def cells() -> set[object]:
        return {found["cell"] for found in check(tmp_path, "notes.ipynb")[1]}  # type: ignore[index]

    written("notes.ipynb", notebook(("code", MODEL)))(tmp_path)
    for name in ("helper.py", "size.txt", "pyproject.toml"):
        written(name, FILES[name])(tmp_path)
    assert cells() == {1}
    written("notes.ipynb", notebook(("markdown", "# Notes"), ("code", MODEL)))(tmp_path)
    assert cells() == {2}


def test_without_time_for_inputs_none_are_from_an_earlier_check(project: Path) -> None:
    def origins(*options: str) -> set[str]:
        examined = check(project, "model.py", *options)[1][-1]
        return {str(function["origin"]) for function in examined["functions"]}  # type: ignore[index]

    (project / "test_model.py").unlink(missing_ok=True)
    assert "assumed" in origins()
    assert "assumed" not in origins("--inputs-time", "0")
