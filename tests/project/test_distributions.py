"""The wheel and the extension's copy of the server are whole, from whatever they are built."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import jax
import pytest

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "server"
PACKAGES = sorted(path.parent.name for path in SERVER.glob("*/__init__.py"))
SITE = Path(jax.__file__).parents[1]
NEEDED_BY_JAX = ("jax", "jaxlib", "ml_dtypes", "numpy*", "opt_einsum", "scipy*")
STARTED = (
    "jaxsight.__main__",
    "jaxsight.compiler.start",
    "jaxsight.lsp.language_server",
    "jaxsight.lsp.server",
    "jaxsight.recording.__main__",
    "jaxsight.tracer.start",
    "jaxsight_repro.editor.commands",
    "jaxsight_repro.start",
)
"""What the processes of an editor import when they start."""
BUNDLE = ROOT / "vscode-extension" / "scripts" / "bundle.py"


def build(source: Path, kind: str, target: Path) -> Path:
    """Build a distribution as pip does, which asks the same backend."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    subprocess.run(command, cwd=source, capture_output=True, check=True)
    [built] = target.iterdir()
    return built


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as a clone has it: without what `make` builds."""
    folder = tmp_path_factory.mktemp("clone")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    parts = ("server", "docs", "examples", "pyproject.toml", "README.md", "LICENSE")
    listed = subprocess.run([*command, *parts], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():  # not one that is deleted, and not committed yet
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build(clone, "wheel", tmp_path_factory.mktemp("wheel")))


def test_a_wheel_has_all_packages_and_the_page(clone: Path, wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    wanted = {
        path.relative_to(clone / "server").as_posix()
        for path in (clone / "server").rglob("*")
        if path.is_file() and path.name != "cases.md"
    }
    assert PACKAGES == ["jaxsight", "jaxsight_dataset", "jaxsight_repro", "jaxsight_source"]
    assert names == wanted
    assert {f"jaxsight/page/{name}" for name in ("page.html", "elk-worker.txt")} <= names
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


@pytest.mark.slow
def test_a_source_archive_makes_the_same_wheel(
    clone: Path, wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    archive = build(clone, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    again = zipfile.ZipFile(build(source, "wheel", tmp_path / "wheel"))
    assert sorted(again.namelist()) == sorted(wheel.namelist())


@pytest.mark.slow
def test_the_source_library_needs_jax_and_numpy_alone(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    wheel.extractall(tmp_path / "site")
    for pattern in NEEDED_BY_JAX:
        for path in SITE.glob(pattern):
            (tmp_path / "site" / path.name).symlink_to(path)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import jax, jax.numpy as jnp\n"
        "from jaxsight_source import sourcerize\n"
        "print(sourcerize(jax.grad(lambda x: jnp.sin(x) ** 2))(1.0))\n"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cos(" in done.stdout


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server as the extension for VS Code has it."""
    specification = importlib.util.spec_from_file_location("bundle", BUNDLE)
    assert specification is not None
    assert specification.loader is not None
    bundle = ModuleType("bundle")
    bundle.__file__ = str(BUNDLE)
    specification.loader.exec_module(bundle)
    folder = tmp_path_factory.mktemp("bundled")
    bundle.copy_server(folder)
    return folder


def in_bundle(bundled: Path, code: str) -> str:
    begin = f"import sys; sys.path[:0] = [{str(bundled)!r}, {str(SITE)!r}]\n"
    command = [sys.executable, "-I", "-S", "-c", begin + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_extension_has_neither_terminal_nor_datasets(bundled: Path) -> None:
    names = {path.relative_to(bundled).as_posix() for path in bundled.rglob("*")}
    assert not any("/cli/" in name or name.startswith("jaxsight_dataset") for name in names)
    assert "jaxsight/page/elk-worker.txt" in names
    in_bundle(bundled, f"import {', '.join(STARTED)}")


def test_where_there_is_no_terminal_the_action_is_named(bundled: Path) -> None:
    code = (
        "from jaxsight.text.terminal import instruction, unasked\n"
        "print(instruction('trust .', 'use *Trust*'), unasked('trust .'), sep='\\n')"
    )
    assert in_bundle(bundled, code) == "use *Trust*\nthis editor cannot ask questions\n"
