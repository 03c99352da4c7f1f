"""Environments with another version of JAX over the user's own packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jaxsight.repro.explaining.environments import Environments, Unavailable

SHOWN = "import jax, numpy, pytest; print(jax.__version__, jax.__file__, pytest.__file__)"


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    """Environments without a network, of which one has a package that is called JAX 9.9.9."""
    environments = Environments.of(tmp_path, sys.executable, offline=True)
    made = tmp_path / f"{environments.platform}-jax9.9.9"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    (packages,) = made.glob("lib/python3*/site-packages")
    (packages / "jax").mkdir()
    (packages / "jax" / "__init__.py").write_text('__version__ = "9.9.9"\n', encoding="utf-8")
    return environments


def shown(python: str) -> list[str]:
    """Return the version and the file of JAX, and the file of another package."""
    ran = subprocess.run([python, "-c", SHOWN], capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_jax_is_the_versions_and_other_packages_are_those_of_the_interpreter(
    environments: Environments,
) -> None:
    python = environments.interpreter_over("9.9.9")
    version, jax, other = shown(python)
    assert version == "9.9.9"
    assert Path(jax).is_relative_to(environments.folder)
    assert Path(other).samefile(pytest.__file__)


def test_an_environment_is_made_once_and_the_interpreter_stays_as_it_is(
    environments: Environments,
) -> None:
    python = environments.interpreter_over("9.9.9")
    before = Path(python).lstat().st_mtime_ns
    assert environments.interpreter_over("9.9.9") == python
    assert Path(python).lstat().st_mtime_ns == before
    assert shown(sys.executable)[0] != "9.9.9"


def test_packages_that_an_editable_install_adds_are_there(
    environments: Environments, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(own)], check=True)
    (packages,) = own.glob("lib/python3*/site-packages")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "edited.py").write_text("", encoding="utf-8")
    (packages / "edited.pth").write_text(f"{tmp_path / 'source'}\n", encoding="utf-8")
    of_own = Environments.of(tmp_path, str(own / "bin" / "python"), offline=True)
    python = of_own.interpreter_over("9.9.9")
    subprocess.run([python, "-c", "import edited, jax; assert jax.__version__"], check=True)


def test_offline_a_version_that_is_not_installed_is_not_available(
    environments: Environments,
) -> None:
    with pytest.raises(Unavailable, match="not installed, and offline"):
        environments.interpreter_over("9.9.8")
