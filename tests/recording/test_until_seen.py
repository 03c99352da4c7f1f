"""`jaxsight record --until-seen`: programs of each form are ended once their functions were called."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from jaxsight.recording import recorded_file

SERVER = Path(__file__).parents[2] / "server"

FUNCTIONS = """\
import jax
import jax.numpy as jnp


def loss(w, x):
    return jnp.sum((x @ w) ** 2)


def make_step(rate):
    @jax.jit
    def step(w, x):
        return w - rate * jax.grad(loss)(w, x)

    return step


class Model:
    def __init__(self, width):
        self.w = jnp.ones((3, width))

    def apply(self, x):
        return jnp.dot(x, self.w)

    @classmethod
    def scaled(cls, x, by=2.0):
        return x * jnp.float32(by)


def run_all():
    step = make_step(0.1)
    step(jnp.ones((3, 2)), jnp.ones((5, 3)))
    Model(2).apply(jnp.ones((4, 3)))
    Model.scaled(jnp.ones(7))
"""

NAMES = {"loss", "make_step.<locals>.step", "Model.apply", "Model.scaled"}
"""The functions that are called with arrays."""

FOREVER = """
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            print("caught")
"""

ENDS = {
    "ends": "",
    "exits": "\n    sys.exit(3)\n",
    "raises": "\n    raise ValueError('late')\n",
    "goes on": FOREVER,
}
"""What a program does once it has called all functions; it cannot keep itself from being ended."""

HEAD = "import sys\nimport time\nfrom pathlib import Path\n\n"

STARTS: dict[str, tuple[str, str, list[str]]] = {
    "a script": ("train.py", "def main():\n    run_all(){end}\n\nmain()\n", ["python", "{file}"]),
    "a guarded script": (
        "train.py",
        "def main():\n    run_all(){end}\n\nif __name__ == '__main__':\n    main()\n",
        ["python", "-u", "{file}"],
    ),
    "a module": (
        "pkg/train.py",
        "from .other import nothing\n\ndef main():\n    run_all(){end}\n\nmain()\n",
        ["python", "-m", "pkg.train"],
    ),
    "absl": (
        "train.py",
        "from absl import app\n\ndef main(argv):\n    run_all(){end}\n\napp.run(main)\n",
        ["python", "{file}"],
    ),
    "typer": (
        "train.py",
        "import typer\n\ndef main(epochs: int = 3):\n    run_all(){end}\n\ntyper.run(main)\n",
        ["python", "{file}", "--epochs", "1"],
    ),
    "multiprocessing": (
        "train.py",
        (
            "import multiprocessing\n\ndef main():\n    run_all(){end}\n\n"
            "if __name__ == '__main__':\n"
            "    p = multiprocessing.get_context('spawn').Process(target=main)\n"
            "    p.start()\n    p.join()\n"
        ),
        ["python", "{file}"],
    ),
}


def record(folder: Path, *words: str, limit: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a program until it is seen."""
    command = [sys.executable, "-m", "jaxsight", "record", "--time-limit", str(limit)]
    return subprocess.run(
        [*command, "--python", sys.executable, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def environment() -> dict[str, str]:
    variables = {**os.environ, "JAX_PLATFORMS": "cpu", "JAXSIGHT_TRUST": "always"}
    return {**variables, "PYTHONPATH": str(SERVER)}


def project(folder: Path, **files: str) -> Path:
    """Make a project; `__` in a name is a slash."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "pyproject.toml").touch()
    return folder


def recorded_in(folder: Path) -> set[str]:
    return {function for _, function in recorded_file.read(folder)}


def cases() -> Iterator[tuple[str, str, str]]:
    """Each start, in the project and elsewhere if that is possible, and each end."""
    for start, (_, _, words) in STARTS.items():
        yield start, "goes on", "inside"
        if "-m" not in words:
            yield start, "goes on", "elsewhere"
    for end in ENDS:
        yield "a guarded script", end, "inside"


@pytest.mark.parametrize(("start", "end", "place"), list(dict.fromkeys(cases())))
def test_each_function_is_seen(tmp_path: Path, start: str, end: str, place: str) -> None:
    name, program, words = STARTS[start]
    folder = tmp_path / "project"
    file = folder / name
    file.parent.mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    if "-m" in words:
        (file.parent / "__init__.py").touch()
        (file.parent / "other.py").write_text("nothing = 0\n")
    file.write_text(HEAD + FUNCTIONS + "\n\n" + program.replace("{end}", ENDS[end]))
    cwd = folder if place == "inside" else tmp_path
    shown = name if place == "inside" else str(file)
    ran = record(cwd, "--until-seen", "--", *(word.format(file=shown) for word in words))
    assert ran.returncode == 0, ran.stderr
    assert "jaxsight: all functions seen; the program was ended after " in ran.stderr
    assert "jaxsight: called without arrays: make_step\n" in ran.stderr
    recorded = recorded_file.read(folder)
    assert recorded_in(folder) == NAMES
    assert recorded[name, "make_step.<locals>.step"][0].inputs == "w: f32[3, 2]\nx: f32[5, 3]"


CHILD = """\
import subprocess
import sys
from pathlib import Path

sleep = [sys.executable, "-c", "import time; time.sleep(1000)"]
child = subprocess.Popen(sleep, start_new_session=True)
Path(__file__).with_name("child").write_text(str(child.pid))
"""


def test_what_a_program_has_started_is_ended_with_it(tmp_path: Path) -> None:
    folder = project(tmp_path, train=f"{CHILD}{FUNCTIONS}\n\nrun_all()\nchild.wait()\n")
    ran = record(folder, "--until-seen", "--", "python", "train.py")
    assert ran.returncode == 0, ran.stderr
    assert "all functions seen" in ran.stderr
    assert not psutil.pid_exists(int((folder / "child").read_text()))


TEST = """\
from model import loss, run_all


def test_all():
    run_all()
    while True:
        pass
"""


@pytest.mark.parametrize(
    "words",
    [
        ["--until-seen", "--", "pytest", "-q", "test_model.py"],
        ["--until-seen", "--", "python", "-m", "pytest", "-q"],
        ["--until-seen", "model.py", "--", "python", "-m", "pytest", "test_model.py::test_all"],
        ["--until-seen", "model.py", "--", "python", "-c", "import model; model.run_all()"],
        ["--until-seen", "--", "python", "main.py"],
    ],
)
def test_functions_of_other_files_are_seen(tmp_path: Path, words: list[str]) -> None:
    main = "import model\n\nif __name__ == '__main__':\n    model.run_all()\n"
    folder = project(tmp_path, model=FUNCTIONS, test_model=TEST, main=main)
    ran = record(folder, *words)
    assert ran.returncode == 0, ran.stderr
    assert recorded_in(folder) == NAMES
    assert {file for file, _ in recorded_file.read(folder)} == {"model.py"}


def test_cells_of_a_notebook_are_run(tmp_path: Path) -> None:
    cells = ["%matplotlib inline\n", FUNCTIONS, "1 / 0", "display(run_all())\n", "while True: pass"]
    content = {
        "cells": [{"cell_type": "code", "source": cell.splitlines(True)} for cell in cells],
        "nbformat": 4,
    }
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.ipynb").write_text(json.dumps(content))
    ran = record(tmp_path, "--until-seen", "--", "train.ipynb")
    assert ran.returncode == 0, ran.stderr
    assert recorded_in(tmp_path) == NAMES
    assert {file for file, _ in recorded_file.read(tmp_path)} == {"train.ipynb"}


@pytest.mark.slow
def test_what_was_seen_until_the_time_limit_is_kept(tmp_path: Path) -> None:
    text = (
        FUNCTIONS + "\n\ndef unused(x):\n    return jnp.sin(x)\n\n\nrun_all()\nwhile True: pass\n"
    )
    folder = project(tmp_path, train=text)
    ran = record(folder, "--until-seen", "--", "python", "train.py", limit=6)
    assert ran.returncode == 1
    assert "the program was ended at the time limit of 6 s" in ran.stderr
    (missing,) = re.findall("not called: (.*)", ran.stderr)
    assert missing.endswith("unused")
    assert recorded_in(folder).isdisjoint(missing.split(", "))


def test_a_program_that_ends_is_reported_with_its_status(tmp_path: Path) -> None:
    folder = project(tmp_path, train=FUNCTIONS + "\n\nraise SystemExit(7)\n")
    ran = record(folder, "--until-seen", "--", "python", "train.py")
    assert ran.returncode == 1
    assert re.search(r"the program ended by itself after .* s \(exit status 7\)", ran.stderr)
    assert recorded_in(folder) == set()


def test_modules_that_are_not_installed_do_nothing_in_the_run(tmp_path: Path) -> None:
    text = (
        "import not_here.plots as plt\nfrom not_there import base\n"
        "try:\n    import optional_one\nexcept ImportError:\n    optional_one = None\n"
        f"{FUNCTIONS}\n\nclass Own(base.Kind):\n    pass\n\n\n"
        "plt.figure(figsize=(3, 4)).show()\nassert optional_one is None\n"
        "for _ in base.data():\n    raise ValueError\nrun_all()\n"
    )
    folder = project(tmp_path, train=text)
    ran = record(folder, "--until-seen", "--", "python", "train.py")
    assert ran.returncode == 0, ran.stderr
    assert "not installed, and without effect in this run: not_here, not_there\n" in ran.stderr


def test_nothing_but_shapes_is_left(tmp_path: Path) -> None:
    text = f"import tempfile\n{FUNCTIONS}\n\ntempfile.mkdtemp(prefix='of-the-program')\nrun_all()\n"
    folder = project(tmp_path / "project", train=text)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "jaxsight", "record", "--until-seen", "--", "python", "train.py"],
        cwd=folder,
        env={**environment(), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0
    lines = ran.stderr.splitlines()
    missing = "loss, make_step, make_step.<locals>.step, Model.apply, Model.scaled"
    assert f"jaxsight: 0 of 5 functions seen; missing: {missing}" in lines
    assert "jaxsight: called without arrays: make_step" in lines
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == [
        ".jaxsight",
        "pyproject.toml",
        "train.py",
    ]
    assert not [path for path in temporary.iterdir() if path.name.startswith("jaxsight-")]
    assert not list(temporary.glob("of-the-program*"))


def test_ctrl_c_keeps_what_was_seen(tmp_path: Path) -> None:
    unused = "\n\ndef unused(x):\n    return jnp.sin(x)\n"
    loop = "\n\nrun_all()\nimport time\nwhile True:\n    time.sleep(1)\n"
    folder = project(tmp_path, train=FUNCTIONS + unused + loop)
    process = subprocess.Popen(
        [sys.executable, "-m", "jaxsight", "record", "--until-seen", "--", "python", "train.py"],
        cwd=folder,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("jaxsight: 5 of 6"):
            break
    program = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "jaxsight: not called: unused" in errors
    assert {function for _, function in recorded_file.read(folder)} == NAMES
    _, alive = psutil.wait_procs(program, 10)
    assert alive == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--until-seen"], "`--until-seen` needs a program"),
        (["--until-seen", "--", "python", "plain.py"], "no function that the program names"),
        (["--until-seen", "plain.py", "--", "python", "plain.py"], "no function in plain.py uses"),
        (["--until-seen", "none.py", "--", "python", "plain.py"], "none.py: no such file"),
    ],
)
def test_a_run_that_cannot_see_anything_is_refused(
    tmp_path: Path, words: list[str], error: str
) -> None:
    ran = record(project(tmp_path, plain="print('ran')\n"), *words)
    assert ran.returncode == 2
    assert error in ran.stderr
    assert "ran" not in ran.stdout
