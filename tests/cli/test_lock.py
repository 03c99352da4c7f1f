"""`jaxsight lock` and `check --locked` as a person and a CI job run them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from tests.terminal import jaxsight

pytestmark = pytest.mark.slow

MODEL = '''\
import jax
import jax.numpy as jnp
import numpy as np

TABLE = np.arange(4096, dtype=np.float32) ** 0.5


def activation(x):
    """
    Example inputs:
        x: f32[1024]
    """
    y = jnp.tanh(x)
    return y * 2


def norm(x):
    """
    Example inputs:
        x: f32[64, 128]
    Example inputs (long):
        x: f32[64, 4096]
    """
    return x / jnp.sqrt((x * x).sum(-1, keepdims=True))


def looked_up(x):
    """
    Example inputs:
        x: f32[4096]
    """
    return x + 1


def guessed(x):
    return jnp.cos(x)
'''
COSMETIC = [
    ("import jax\n", "# A comment.\nimport jax\n\n"),
    ("    y = jnp.tanh(x)\n    return y * 2", "    squashed = jnp.tanh(\n        x\n    )\n    return squashed * 2"),
]  # fmt: skip
REGRESSIONS = [
    ("jnp.tanh(x)", "jax.lax.optimization_barrier(jnp.tanh(x))"),
    ("return x + 1", "return x + 1 + TABLE"),
]
"""A kernel split at line 13, a constant captured at line 32."""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return jaxsight(*arguments, cwd=folder)


def edited(edits: list[tuple[str, str]]) -> str:
    text = MODEL
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project that `jaxsight lock` has locked."""
    folder = tmp_path_factory.mktemp("locked")
    (folder / "pyproject.toml").write_text('[tool.jaxsight]\ntarget = "cpu"\n', encoding="utf-8")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    done = run(folder, "lock", "--python", sys.executable)
    assert (done.returncode, done.stdout) == (0, f"Wrote {folder}/jaxsight.lock (4 lines).\n")
    return folder


@pytest.fixture
def project(locked: Path) -> Iterator[Path]:
    """Return the locked project, as it was after the test."""
    lock = (locked / "jaxsight.lock").read_bytes()
    yield locked
    (locked / "model.py").write_text(MODEL, encoding="utf-8")
    (locked / "jaxsight.lock").write_bytes(lock)


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    chosen = ("--locked", "--select", "JX502", "--python", sys.executable)
    return run(folder, "check", *chosen, *arguments)


def messages(done: subprocess.CompletedProcess[str]) -> list[tuple[int, str]]:
    findings = [each for each in json.loads(done.stdout) if each["code"] == "JX502"]
    return [(each["location"]["row"], each["message"]) for each in findings]


def test_a_lock_has_a_line_for_each_function_with_written_inputs(project: Path) -> None:
    lines = (project / "jaxsight.lock").read_text(encoding="utf-8").splitlines()
    assert lines[2].startswith("[cpu on ")
    names = [line.partition("  ")[0] for line in lines[3:]]
    assert names == [
        "model.py:activation",
        "model.py:looked_up",
        "model.py:norm",
        "model.py:norm[long]",
    ]
    assert "  kernels=1[output:4KiB]  launches=1  temp=0B  args=4KiB  out=4KiB  " in lines[3]
    assert "  inputs=f32[1024]  results=f32[1024]  program=" in lines[3]


def test_edits_that_change_no_program_are_silent(project: Path) -> None:
    (project / "model.py").write_text(edited(COSMETIC), encoding="utf-8")
    done = check(project)
    assert done.returncode == 0, done.stdout
    assert "not in jaxsight.lock" not in done.stderr


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="what XLA fuses depends on it")
def test_regressions_are_errors_at_their_lines_until_they_are_accepted(project: Path) -> None:
    (project / "model.py").write_text(edited(REGRESSIONS), encoding="utf-8")
    done = check(project, "--output-format", "json")
    assert done.returncode == 1
    assert messages(done) == [
        (13, "kernels 1 → 2 on cpu; kernel split: optimization_barrier"),
        (32, "constants 0 B → 16 KiB on cpu; constant of 16 KiB captured"),
    ]
    ignored = edited(REGRESSIONS).replace("+ TABLE", "+ TABLE  # jaxsight: ignore[JX502]")
    (project / "model.py").write_text(ignored, encoding="utf-8")
    assert [line for line, _ in messages(check(project, "--output-format", "json"))] == [13]
    (project / "model.py").write_text(edited(REGRESSIONS), encoding="utf-8")
    updated = check(project, "--update")
    assert updated.returncode == 0
    assert "jaxsight.lock: 2 differences" in updated.stderr
    assert check(project).returncode == 0


def test_what_the_lock_does_not_know_is_a_note(project: Path) -> None:
    lock = project / "jaxsight.lock"
    text = lock.read_text(encoding="utf-8")
    lock.write_text(text.replace(", jax ", ", jax 0.1."), encoding="utf-8")
    done = check(project)
    assert done.returncode == 0
    assert "jaxsight.lock has no section for cpu on " in done.stderr
    assert " differs from jax 0.1." not in done.stderr
    (project / "model.py").write_text(edited(REGRESSIONS), encoding="utf-8")
    done = check(project)
    assert done.returncode == 0
    assert (
        f"note: model.py:looked_up differs from jax 0.1.{jax.__version__}: constants 0 B → 16 KiB"
        in done.stderr
    )
    renamed = MODEL.replace("def looked_up", "def added")
    (project / "model.py").write_text(renamed, encoding="utf-8")
    lock.write_text(text, encoding="utf-8")
    done = check(project)
    assert done.returncode == 0
    assert "note: model.py:looked_up is model.py:added now; update its line" in done.stderr


def test_a_function_that_is_gone_or_fails_is_an_error(project: Path) -> None:
    head, _, tail = MODEL.partition("def looked_up")
    gone = head.replace("y * 2", "y * jnp.ones(3)") + tail.partition("\n\n\n")[2]
    (project / "model.py").write_text(gone, encoding="utf-8")
    done = check(project, "--output-format", "json")
    assert done.returncode == 1
    found = dict(messages(done))
    assert found[1] == "`looked_up` is locked, but has no known inputs"
    assert found[8].startswith("`activation` is locked, but it cannot be traced: ")


def test_without_a_lock_and_with_wrong_options_it_says_so(tmp_path: Path, project: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.jaxsight]\n", encoding="utf-8")
    (tmp_path / "empty.py").write_text("X = 1\n", encoding="utf-8")
    done = check(tmp_path)
    assert done.returncode == 2
    assert f"no jaxsight.lock in {tmp_path}; create it with `jaxsight lock`" in done.stderr
    assert run(tmp_path, "lock", "--python", sys.executable).returncode == 3
    (project / "jaxsight.lock").write_text("{}\n", encoding="utf-8")
    done = check(project)
    assert done.returncode == 2
    assert "line 1: not a lock of format 1" in done.stderr
    for broken in ("", "\n"):
        (project / "jaxsight.lock").write_text(broken, encoding="utf-8")
        assert "line 1: not a lock of format 1" in check(project).stderr
    assert "--update requires --locked" in run(project, "check", "--update").stderr


@pytest.mark.parametrize("has_target", [True, False])
def test_a_lock_that_leads_out_of_the_project_is_neither_read_nor_written(
    tmp_path: Path, project: Path, has_target: bool
) -> None:
    lock = project / "jaxsight.lock"
    outside, before = tmp_path / "outside", lock.read_bytes()
    if has_target:
        outside.write_bytes(before)
    lock.unlink()
    lock.symlink_to(outside)
    (project / "model.py").write_text(edited([("jnp.tanh(x)", "jnp.sin(x)")]), encoding="utf-8")
    for arguments in (["lock"], ["check", "--locked"], ["check", "--locked", "--update"]):
        done = run(project, *arguments, "--python", sys.executable)
        assert done.returncode == 2
        assert f"jaxsight.lock: it is outside of {project}" in done.stderr
    assert outside.exists() == has_target
    assert not has_target or outside.read_bytes() == before
    lock.unlink()


OBSERVED = """\
import functools

import jax
import jax.numpy as jnp

TEXT = open("not_there.txt").read()


@jax.jit
def decorated(x):
    return jnp.sum(inside(x))


def inside(x):
    return jnp.sin(x)


def wrapped(x, n):
    return jnp.tanh(x) * n


def differentiated(x):
    return jnp.sum(x**3)


@jax.jit
def of_unknown_size(x):
    return jnp.cos(x)


@jax.jit
def of_unknown_data(x):
    return jnp.exp(x)


@jax.jit
def never_called(x):
    return jnp.log(x)


def eager(x):
    return jnp.sum(x) + 1


if __name__ == "__main__":
    x = jnp.ones((4, 3))
    print(decorated(x), jax.jit(functools.partial(wrapped, n=2))(x), eager(x))
    print(jax.jit(jax.grad(differentiated))(x))
    of_unknown_size(jnp.ones(len(TEXT)))
    of_unknown_data(jnp.array(list(map(ord, TEXT))))
"""


def test_programs_that_a_file_compiles_are_locked_if_their_inputs_are_known(
    tmp_path: Path,
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(OBSERVED, encoding="utf-8")
    done = jaxsight("lock", "--python", sys.executable, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lock = (tmp_path / "jaxsight.lock").read_text(encoding="utf-8")
    lines = [line for line in lock.split("\n") if line.startswith("train.py")]
    assert [line.partition("  ")[0] for line in lines] == [
        "train.py:decorated",
        "train.py:wrapped",
    ]
    assert all("  origin=observed  " in line for line in lines)
    changed = OBSERVED.replace("jnp.sum(inside(x))", "jnp.linalg.norm(jnp.sort(inside(x)))")
    (tmp_path / "train.py").write_text(changed, encoding="utf-8")
    checked = jaxsight("check", "--locked", "--python", sys.executable, cwd=tmp_path)
    assert checked.returncode == 1
    assert "`decorated` differs from jaxsight.lock" in checked.stdout
