"""`jaxsight measure` as a person runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.terminal import SERVER, jaxsight

pytestmark = pytest.mark.slow

MODEL = '''\
import jax
import jax.numpy as jnp


def fast(x):
    """
    Example inputs:
        x: f32[64, 256]
    """
    return jnp.tanh(x)


def slow(x):
    """
    Example inputs:
        x: f32[64, 256]
    """
    return jnp.sort(jnp.sort(jnp.tanh(x), axis=0), axis=1)


def fails(x):
    """
    Example inputs:
        x: f32[2]
    """
    return x @ jnp.ones(3)


def forever(x):
    """
    Example inputs:
        x: f32[8]
    """
    return jax.lax.while_loop(lambda c: jnp.all(jnp.abs(c) < 10), jnp.sin, x)
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.jaxsight]\npython = {json.dumps(sys.executable)}\n", "utf-8"
    )
    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    return tmp_path


def test_a_table_has_the_kernels_with_their_times(project: Path) -> None:
    done = jaxsight("measure", "model.py:slow", "-t", "cpu", "--repeat", "7", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "⏱ slow: " in done.stdout
    assert "7 runs" in done.stdout
    assert "measured on cpu" in done.stdout
    assert "random arguments: x" in done.stdout
    assert done.stdout.count("sort") >= 2


def test_json_has_what_programs_need(project: Path) -> None:
    done = jaxsight("measure", "model.py:slow", "-t", "cpu", "--repeat", "7", "--json", cwd=project)
    found = json.loads(done.stdout)
    assert found["runs"] == 7
    assert 0 < found["wall_seconds_least"] <= found["wall_seconds"]
    assert found["device_seconds"] > 0
    assert found["unmatched_seconds"] == 0
    for kernel in found["kernels"]:
        assert kernel["name"]
        assert kernel["seconds"] > 0
        assert kernel["calls"] >= 1
        assert kernel["estimate_seconds"] is None  # there are no figures of CPUs
        assert kernel["lines"]
    assert found["noise"]["cores"] >= 1


def test_two_functions_are_compared_with_an_interval(project: Path) -> None:
    arguments = ["measure", "model.py:fast", "-t", "cpu", "--against", "model.py:slow"]
    done = jaxsight(*arguments, "--repeat", "60", "--json", cwd=project)
    other = json.loads(done.stdout)["against"]
    assert other["function"] == "slow"
    assert 1 < other["ratio"]["low"] <= other["ratio"]["ratio"] <= other["ratio"]["high"]


def test_a_function_is_compared_with_its_text_in_git(project: Path) -> None:
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *names, *command], cwd=project, check=True)
    changed = MODEL.replace("return jnp.tanh(x)", "return jnp.sort(jnp.tanh(x))", 1)
    (project / "model.py").write_text(changed, "utf-8")
    done = jaxsight(
        "measure", "model.py:fast", "-t", "cpu", "--against", "HEAD", "--repeat", "60", cwd=project
    )
    assert done.returncode == 0, done.stderr
    assert "fast of HEAD: " in done.stdout
    assert "times as long as fast of HEAD (95 % interval" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["model.py:fast", "-t", "cuda:h100"], 2, "it is no device of this machine"),
        (["model.py:fast", "-t", "ssh://host/cuda:h100"], 2, "it is no device of host"),
        (["model.py:fails", "-t", "cpu"], 1, ""),
        (["model.py:nothing", "-t", "cpu"], 2, "no function nothing"),
    ],
)
def test_what_cannot_be_measured_is_one_clear_line(
    arguments: list[str], status: int, words: str, project: Path
) -> None:
    done = jaxsight("measure", *arguments, cwd=project)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_uses_too_much_memory_says_so(project: Path) -> None:
    text = MODEL.replace("f32[64, 256]", "f32[16384, 32768]", 1)
    (project / "model.py").write_text(text, "utf-8")
    settings = project / "pyproject.toml"
    settings.write_text(settings.read_text("utf-8") + 'memoryLimit = "1 GiB"\n', "utf-8")
    done = jaxsight("measure", "model.py:fast", "-t", "cpu", "--repeat", "3", cwd=project)
    assert done.returncode == 2
    assert "of memory, limit 1 GiB" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="a signal of POSIX")
def test_ctrl_c_leaves_no_process(project: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "jaxsight", "measure", "model.py:forever", "-t", "cpu"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(SERVER)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    own = psutil.Process(running.pid)
    deadline = time.monotonic() + 60

    def is_running() -> bool:
        """Whether a process computes without end."""
        return any(each.cpu_times().user > 5 for each in own.children(recursive=True))

    while not is_running() and time.monotonic() < deadline:
        time.sleep(0.2)
    below = own.children(recursive=True)
    begin = time.monotonic()
    running.send_signal(signal.SIGINT)
    assert running.wait(10) == 130
    assert time.monotonic() - begin < 3
    assert not [child for child in below if child.is_running() and child.status() != "zombie"]
