"""`jaxsight.assert_program` in a project's own tests: written once, and compared from then on."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import jax
import pytest

import jaxsight
from tests.cli.test_commands import SERVER

TEST = """\
import jax
import jax.numpy as jnp
import pytest

import jaxsight

X = jax.ShapeDtypeStruct((1024,), jnp.float32)


def activation(x):
    y = jnp.tanh(x)
    return y * 2


@pytest.mark.parametrize("scale", [2])
def test_activation(scale):
    jaxsight.assert_program(activation, (X,), target="cpu")
    jaxsight.assert_program(lambda x: scale * x, (X,), target="cpu", name="scaled")
"""
IS_INSTALLED = any(each.name == "jaxsight-programs" for each in entry_points(group="pytest11"))


def run_tests(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    plugin = () if IS_INSTALLED else ("-p", "jaxsight.library.pytest_plugin")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SERVER)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="what XLA fuses depends on it")
def test_a_program_is_kept_beside_its_test_until_it_changes(tmp_path: Path) -> None:
    test, lock = tmp_path / "test_model.py", tmp_path / "test_model.lock"
    test.write_text(TEST, encoding="utf-8")
    missing = run_tests(tmp_path)
    assert missing.returncode == 1
    assert "is not in test_model.lock; add it with pytest --update-programs" in missing.stdout
    assert not lock.exists()
    assert run_tests(tmp_path, "--update-programs").returncode == 0
    lines = lock.read_text(encoding="utf-8").splitlines()
    assert [line.partition("  ")[0] for line in lines[3:]] == [
        "test_activation[2]:activation",
        "test_activation[2]:scaled",
    ]
    assert "  kernels=1[output:4KiB]  launches=1  temp=0B  args=4KiB  out=4KiB  " in lines[3]
    barrier = TEST.replace("jnp.tanh(x)\n", "jax.lax.optimization_barrier(jnp.tanh(x))  # 11\n")
    test.write_text(barrier, encoding="utf-8")
    changed = run_tests(tmp_path)
    assert changed.returncode == 1
    assert "ProgramChanged: activation differs from test_model.lock on cpu" in changed.stdout
    assert "kernels 1 → 2; kernel split: optimization_barrier at line 11" in changed.stdout
    test.write_text(TEST.replace("    y = ", "    # A comment.\n    z = ").replace("y *", "z *"))
    assert run_tests(tmp_path).returncode == 0
    lock.write_text(lock.read_text().replace(", jax ", ", jax 0.1."), encoding="utf-8")
    other = run_tests(tmp_path)
    assert other.returncode == 0
    assert "test_model.lock has no section for cpu on " in other.stdout


def test_what_is_wrong_with_the_file_or_the_arguments_is_said(tmp_path: Path) -> None:
    x = jax.ShapeDtypeStruct((8,), "float32")
    scope: dict[str, object] = {"jaxsight": jaxsight, "x": x}
    code = "jaxsight.assert_program(abs, (x,), target='cpu', tolerate={'temp': 'much'})"
    compiled = compile(code, str(tmp_path / "test_a.py"), "exec")
    with pytest.raises(jaxsight.ProgramChanged, match=r"abs is not in test_a\.lock"):
        exec(compiled, scope)
    (tmp_path / "test_a.lock").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"cannot read .*test_a\.lock: line 1: not a lock"):
        exec(compiled, scope)
