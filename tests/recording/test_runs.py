"""Runs of real programs: what is recorded of them, and that they run as they would otherwise."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxsight.recording import recorded_file
from jaxsight.recording.recorded_file import RecordedCall, RecordedFileError

ROOT = Path(__file__).parents[2]

LIBRARY = """\
from typing import NamedTuple

import jax
import jax.numpy as jnp


class State(NamedTuple):
    weights: dict
    step: int


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    @classmethod
    def shifted(cls, x, by=1):
        return x + by


def loss(weights, x):
    return jnp.sum(Scale(2.5)(x @ weights["w"]) ** 2)


@jax.jit
def update(state, x):
    grads = jax.grad(loss)(state.weights, x)
    return State(jax.tree.map(lambda w, g: w - 0.1 * g, state.weights, grads), state.step + 1)


def mixed(key, mode, *rest, axis=0, **options):
    return jnp.sum(rest[0], axis)


def numbered(x, i):
    return x + i


def generated(x):
    yield x


async def later(x):
    return x


def without_arrays(n):
    return n + 1
"""

SCRIPT = """\
import sys

import jax
import jax.numpy as jnp

import library


def main():
    state = library.State({"w": jnp.full((4, 2), 1234.5, jnp.float32)}, 0)
    for n in (3, 8, 3):
        state = library.update(state, jnp.ones((n, 4)))
    library.mixed(jax.random.key(0), "sum", jnp.ones((2, 3)), axis=1, scale=jnp.int32(7))
    for i in range(20):
        library.numbered(jnp.ones(3), i)
    library.numbered(jnp.ones(5), 0)
    next(library.generated(state))
    library.without_arrays(3)
    library.Scale.shifted(jnp.ones(6))
    print(sys.argv[1:], sys.stdin.read())
    sys.exit(3)


if __name__ == "__main__":
    main()
"""


def command(folder: Path, *words: str) -> list[str]:
    """The command that records a run, of a server as an extension brings it along."""
    bundled = folder / ".bundled"
    (bundled / "libs").mkdir(parents=True, exist_ok=True)
    if not (bundled / "libs" / "jaxsight").exists():
        (bundled / "libs" / "jaxsight_source").symlink_to(ROOT / "server" / "jaxsight_source")
        (bundled / "libs" / "jaxsight").mkdir()
        for part in (ROOT / "server" / "jaxsight").iterdir():
            if part.name != "cli":  # an extension has no terminal
                (bundled / "libs" / "jaxsight" / part.name).symlink_to(part)
        shutil.copy(ROOT / "vscode-extension" / "scripts" / "start.py", bundled)
    start = [sys.executable, "-I", "-S", str(bundled / "start.py"), "record"]
    return [*start, "--python", sys.executable, "--", *words]


def environment() -> dict[str, str]:
    variables = {**os.environ, "JAX_PLATFORMS": "cpu"}
    variables.pop("PYTHONPATH", None)
    return variables


def record(
    folder: Path, *words: str, text: str = ""
) -> tuple[subprocess.CompletedProcess[str], dict[str, tuple[RecordedCall, ...]]]:
    """Run a program in a folder; return how it ended, and what is recorded by file and function."""
    ran = subprocess.run(
        command(folder, *words),
        cwd=folder,
        env=environment(),
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    functions = recorded_file.read(folder)
    return ran, {f"{file}:{name}": calls for (file, name), calls in functions.items()}


def project(folder: Path, **files: str) -> Path:
    """Make a project."""
    for name, text in {"library": LIBRARY, **files}.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "pyproject.toml").touch()
    return folder


def test_a_script_runs_as_without_it_and_its_calls_are_recorded(tmp_path: Path) -> None:
    folder = project(tmp_path, train=SCRIPT)
    ran, found = record(folder, "python", "train.py", "-v", text="typed")
    assert (ran.returncode, ran.stdout) == (3, "['-v'] typed\n")
    inputs = {name: [call.inputs for call in calls] for name, calls in found.items()}
    # As the body of what is jitted sees it, where numbers are arrays.
    state = "State(weights={'w': jnp.zeros((4, 2), 'float32')}, step=jnp.asarray(0))"
    traced = "weights: {'w': f32[4, 2]}\nx: "
    assert inputs["library.py:loss"] == [f"{traced}f32[3, 4]", f"{traced}f32[8, 4]"]
    assert inputs["library.py:update"] == [f"state = {state}\nx: f32[{n}, 4]" for n in (3, 8)]
    assert inputs["library.py:Scale.__call__"][0] == "self = Scale(factor=2.5)\nx: f32[3, 2]"
    assert inputs["library.py:Scale.shifted"] == ["x: f32[6]\nby: 1"]
    assert inputs["library.py:mixed"] == [
        "key: key<fry>[]\nmode: 'sum'\n*rest: (f32[2, 3],)\naxis: 1\n**options: {'scale': i32[]}"
    ]
    assert inputs["library.py:numbered"] == ["x: f32[3]\ni: 0", "x: f32[5]\ni: 0"]
    assert not inputs.keys() & {f"library.py:{n}" for n in ("generated", "later", "without_arrays")}
    assert [call.is_traced for call in found["library.py:loss"]] == [True, True]
    assert not found["library.py:numbered"][0].is_traced
    assert "1234.5" not in (folder / ".jaxsight" / "recorded.json").read_text()
    assert (folder / ".jaxsight" / ".gitignore").read_text().endswith("*\n")
    assert "jaxsight: recorded 6 functions in .jaxsight/recorded.json" in ran.stderr


CRASHING = """\
import multiprocessing, os, threading
import jax.numpy as jnp
import numpy as np
import library

if __name__ == "__main__":
    thread = threading.Thread(target=library.numbered, args=(jnp.ones(7), 1))
    thread.start()
    thread.join()
    process = multiprocessing.get_context("spawn").Process(
        target=library.numbered, args=(np.ones(9), 1)
    )
    process.start()
    process.join()
    os.closerange(3, 64)
    library.mixed(jnp.ones(1), "a", jnp.ones(2))
    os._exit(7)
"""


def test_threads_processes_and_a_hard_exit_lose_nothing(tmp_path: Path) -> None:
    folder = project(tmp_path, **{"package/__main__": CRASHING})
    ran, found = record(folder, "python", "-m", "package")
    assert ran.returncode == 7, ran.stderr
    assert [call.inputs for call in found["library.py:numbered"]] == [
        "x: f32[7]\ni: 1",
        "x: f32[9]\ni: 1",
    ]
    assert found["library.py:mixed"][0].calls == 1


def test_an_exception_ends_the_program_as_it_would(tmp_path: Path) -> None:
    text = "import library, jax.numpy as jnp\ndef f(x):\n    return x['w']\nlibrary.numbered(jnp.ones(2), 1)\nf({})\n"
    folder = project(tmp_path, crash=text)
    ran, found = record(folder, "python", "crash.py")
    assert ran.returncode == 1
    assert ", line 5, in <module>\n" in ran.stderr
    assert ", line 3, in f\n" in ran.stderr
    assert "KeyError: 'w'\n" in ran.stderr
    assert "library.py:numbered" in found


TEST = """\
import jax.numpy as jnp
import library

def helper(x):
    return x

def test_it():
    assert helper(library.numbered(jnp.ones(4), 2)).shape == (4,)

def test_fails():
    assert library.numbered(jnp.ones((2, 2)), 2) is None
"""


def test_functions_are_recorded_as_tests_call_them(tmp_path: Path) -> None:
    folder = project(tmp_path, **{"tests/test_library": TEST})
    ran, found = record(folder, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert ran.returncode == 1
    assert "1 failed, 1 passed" in ran.stdout
    assert [call.inputs for call in found.pop("library.py:numbered")] == [
        "x: f32[4]\ni: 2",
        "x: f32[2, 2]\ni: 2",
    ]
    assert found == {}


LONG = """\
import sys, time
import jax.numpy as jnp
import library

library.numbered(jnp.ones(2), 1)
try:
    print("ready", flush=True)
    time.sleep(100)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(5)
"""


def test_ctrl_c_is_the_programs_and_a_running_program_is_recorded_already(tmp_path: Path) -> None:
    folder = project(tmp_path, long=LONG)
    with subprocess.Popen(
        command(folder, "python", "long.py"),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        while not (folder / ".jaxsight" / "recorded.json").exists():
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
        assert process.wait() == 5


def test_a_program_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    ran, found = record(tmp_path, "no-such-program")
    assert (ran.returncode, found) == (127, {})
    assert ran.stderr == "error: no-such-program: No such file or directory\n"


def test_recordings_add_up_and_those_of_deleted_files_go(tmp_path: Path) -> None:
    def call(inputs: str) -> RecordedCall:
        return RecordedCall(inputs, 1, True, "2026-01-01")

    (tmp_path / "a.py").touch()
    earlier = {
        ("a.py", "f"): tuple(map(call, ("x: f32[1]", "x: f32[2]", "x: f32[3]"))),
        ("a.py", "g"): (call("x: f32[4]"),),
        ("gone.py", "f"): (call("x: f32[5]"),),
    }
    new = {("a.py", "f"): (call("x: f32[3]"), call("x: f32[9]"))}
    recorded_file.write(tmp_path, recorded_file.merged(earlier, new, tmp_path))
    found = recorded_file.read(tmp_path)
    assert [made.inputs for made in found["a.py", "f"]] == ["x: f32[3]", "x: f32[9]", "x: f32[1]"]
    assert found.keys() == {("a.py", "f"), ("a.py", "g")}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"version": 99}',
        "\0",
        json.dumps({"version": 1, "a": "b" * 5_000_000}),
    ],
    ids=["empty", "torn", "list", "deep", "newer", "binary", "large"],
)
def test_a_broken_file_is_one_error(tmp_path: Path, content: str) -> None:
    path = recorded_file.path_in(tmp_path)
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(RecordedFileError):
        recorded_file.read(tmp_path)


@pytest.mark.parametrize(
    "functions",
    [
        3,
        {"/etc/passwd": {"f": [{"inputs": "", "calls": 1, "traced": True, "date": ""}]}},
        {"../a.py": {"f": [{"inputs": "", "calls": 1, "traced": True, "date": ""}]}},
        {"a.py": {"f": [{"inputs": 3}, None, {}]}},
        {"a.py": [1]},
    ],
)
def test_entries_of_another_form_are_left_out(tmp_path: Path, functions: object) -> None:
    path = recorded_file.path_in(tmp_path)
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 1, "functions": functions}))
    assert recorded_file.read(tmp_path) == {}
