"""A scratch copy of the repository with an environment of its own, in which faults are set."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tools.faults import pytest_chosen
from tools.faults.candidates import Fault, replaced
from tools.faults.recording import IMPORT

SENTINELS = {"JAXSIGHT_SEARCH": "sentinels"}
"""With what the gate runs: of each search ten cases, also within one test."""
_PLUGIN = "faults_chosen"
_HUNG = 1.5
"""Seconds of a test's patience that end a run that does not even end itself."""
_START = 180
"""Seconds that a run may take besides its tests, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run."""

    failed: list[str]
    """Tests that failed; files that could not be collected."""
    ended: list[str]
    """The tests that ran to their end."""
    killed: str | None
    """The test that was running when the process ended: it hung or crashed."""
    broken: bool
    """Whether pytest itself did not work, or never began a test."""
    output: str


class Scratch:
    """A work tree of a revision, whose environment imports the server from it."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._python = tree / ".venvs" / Path(sys.prefix).name / "bin" / "python"

    @contextmanager
    def fault(self, fault: Fault) -> Iterator[None]:
        """Set a fault for a while; `ValueError` if its line is not what it was."""
        file = self.tree / fault.file
        text = file.read_text(encoding="utf-8")
        file.write_text(replaced(text, fault.line, fault.before, fault.after), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(text, encoding="utf-8")

    def is_of_search(self, file: str) -> bool:
        """Return whether a file of tests holds other cases in the gate than in all tests."""
        path = self.tree / file
        return path.is_file() and "tests.searches" in path.read_text(encoding="utf-8")

    def run(
        self,
        tests: Sequence[str],
        patience: float,
        limit: float,
        *options: str,
        as_gate: bool = False,
    ) -> Outcome:
        """Run tests in this order.

        Args:
            tests: node ids.
            patience: seconds after which a test hangs.
            limit: seconds after which no further test matters.
            options: of pytest.
            as_gate: whether searches hold ten cases.
        """
        files = dict.fromkeys(name.partition("::")[0] for name in tests)
        with tempfile.TemporaryDirectory() as folder:
            chosen, outcomes, output = (
                Path(folder, name) for name in ("chosen", "outcomes", "output")
            )
            chosen.write_text("\n".join(tests), encoding="utf-8")
            outcomes.touch()
            command = [
                str(self._python), "-m", "pytest", "-q", "--tb=short", "--show-capture=no",
                "-p", "no:cacheprovider",
                "-p", _PLUGIN, f"--chosen={chosen}", f"--outcomes={outcomes}",
                "-o", f"faulthandler_timeout={patience:.0f}", *options,
                *(file for file in files if (self.tree / file).is_file()),
            ]  # fmt: skip
            with output.open("wb") as written:
                environment = _environment(self.tree) | (SENTINELS if as_gate else {})
                longest = _START + max(limit, _HUNG * patience)
                status = self._wait(command, environment, written.fileno(), longest)
            rows = outcomes.read_text(encoding="utf-8").splitlines()
            return _read(rows, status, output.read_text(encoding="utf-8", errors="replace"))

    def _wait(
        self, command: Sequence[str], environment: dict[str, str], output: int, limit: float
    ) -> int | None:
        process = subprocess.Popen(
            command, cwd=self.tree, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Also what tests left running.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()


@contextmanager
def scratch(root: Path, revision: str) -> Iterator[Scratch]:
    """Make a scratch copy, and remove it in the end."""
    # Tests find what lies beside the repository by its relative path.
    with tempfile.TemporaryDirectory(prefix="jaxsight-faults-") as folder:
        tree = Path(folder, "main")
        _git(root, "worktree", "add", "--quiet", "--detach", str(tree), revision)
        try:
            _copy_environments(root / ".venvs", tree)
            yield Scratch(tree)
        finally:
            _git(root, "worktree", "remove", "--force", str(tree))


def _copy_environments(environments: Path, tree: Path) -> None:
    """Link all environments, and copy the one that runs, by links, with the scratch server in it.

    A variable such as PYTHONPATH would not do: isolated interpreters ignore it, and tests of
    environments see it.
    """
    own = Path(sys.prefix)
    (tree / ".venvs").mkdir()
    for environment in environments.iterdir():
        if environment.name != own.name:
            (tree / ".venvs" / environment.name).symlink_to(environment.resolve())
    copy = tree / ".venvs" / own.name
    packages = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}/site-packages")
    (copy / packages).mkdir(parents=True)
    (copy / "bin").mkdir()
    (copy / "lib64").symlink_to("lib")
    for name in ("pyvenv.cfg", ".installed"):
        if (own / name).is_file():
            shutil.copyfile(own / name, copy / name)
    for program in (own / "bin").iterdir():
        shutil.copy2(program, copy / "bin" / program.name, follow_symlinks=False)
        if not program.is_symlink():
            text = program.read_bytes().replace(str(own.resolve()).encode(), str(copy).encode())
            (copy / "bin" / program.name).write_bytes(text)
    for entry in (own / packages).iterdir():
        inside = copy / packages / entry.name
        if entry.name.startswith(("_editable_impl_jaxsight", "__editable__.jaxsight")):
            inside.with_name("_editable_impl_jaxsight.pth").write_text(f"{tree / 'server'}\n")
        elif entry.name != IMPORT:
            inside.symlink_to(entry.resolve())
    plugin = copy / packages / f"{_PLUGIN}.py"
    plugin.symlink_to(Path(pytest_chosen.__file__))


def _environment(tree: Path) -> dict[str, str]:
    # No cache of compiled programs from other runs: one with a fault must not fill or read it.
    dropped = ("PYTHONPATH", "JAXSIGHT_LINES", "JAXSIGHT_TEST_CACHE", "JAXSIGHT_SEARCH")
    variables = {name: value for name, value in os.environ.items() if name not in dropped}
    path = [str(tree / ".venvs" / "neovim" / "bin"), variables.get("PATH", "")]
    return variables | {
        "CI": "true",
        "INLINE_SNAPSHOT_DEFAULT_FLAGS": "disable",
        "PATH": os.pathsep.join(path),
    }


def _read(rows: Sequence[str], status: int | None, output: str) -> Outcome:
    # In order, and each once: with several processes of pytest, two of them write the same.
    failed, uncollected, running, ended = (dict[str, None]() for _ in range(4))
    for row in rows:
        word, _, name = row.partition(" ")
        match word:
            case "began":
                running[name] = None
            case "ended":
                running.pop(name, None)
                ended[name] = None
            case "failed":
                failed[name] = None
            case "uncollected":
                uncollected[name] = None
    # A hanging test ends its process itself, so one that is cut off (`None`) was only slow, if it
    # was running a test. 2 follows from what could not be collected.
    cut = status is None and bool(ended or running)
    killed = None if cut else next(reversed(running), None)
    works = cut or status in (0, 1, 5) or bool(uncollected or failed or killed)
    return Outcome([*uncollected, *failed], [*ended], killed, not works, output)


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True)
