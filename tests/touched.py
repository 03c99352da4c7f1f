"""Which tests a change touches: `pytest --touched REVISION` holds these alone.

Of a package that differs from the revision, all tests; of packages that import it, directly or
through others, and of the whole product (`tests/e2e`, `tests/editors` …), those that are not slow.
Where a file differs that all of them depend on, all tests. The folders of tests are named after
the packages, and so are those of corpora and tools.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from tests.imports import of_packages, reached

BY_NAME = {"workers": {"tracer", "repro"}}
"""Packages that start others as processes, by name."""
EVERYTHING = ("pyproject.toml", "requirements/", ".ci/", "tests/conftest.py")
"""Beginnings of the paths that all tests depend on."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What a change touches."""

    whole: frozenset[str]
    """Folders of tests, or files of them, that are run whole."""
    quick: frozenset[str]
    """Folders of which the tests that are not slow are run."""
    everything: bool = False

    def holds(self, path: str, is_slow: bool) -> bool:
        """Return whether a test of a file, whose path begins with `tests/`, is run."""
        folder = _folder(path)
        if self.everything or path in self.whole or folder in self.whole:
            return True
        return folder in self.quick and not is_slow


def by(changed: Iterable[str], folders: Iterable[str]) -> Touched:
    """Return what files that differ touch.

    Args:
        changed: Paths below the root of the repository.
        folders: The names of all folders of tests.
    """
    imports = of_packages()
    imports = {name: imports[name] | BY_NAME.get(name, set()) for name in imports}
    packages, whole, everything = set[str](), set[str](), False
    for path in changed:
        parts = PurePath(path).parts
        match parts:
            case ("server", "jaxsight", package, *_):
                packages.add(package.removesuffix(".py"))
            case ("tests", _, *_) if parts[-1].startswith("test_"):
                whole.add(path)
            case ("tests", "corpora", folder, *_) | ("tools", folder, _, *_):
                whole.add(folder)
            case ("tests", folder, _, *_):
                whole.add(folder)
            case ("docs", *_):
                whole.add("docs")
        everything = everything or path.startswith(EVERYTHING)
    dependent = {name for name in imports if reached(imports, name) & packages}
    products = {name for name in folders if name not in imports} if packages else set()
    return Touched(frozenset(whole | packages), frozenset(dependent | products), everything)


def since(revision: str) -> list[str]:
    """Return the files that differ from a revision, also those that git does not track yet."""
    commands = (
        ("diff", "--name-only", revision),
        ("ls-files", "--others", "--exclude-standard"),
    )
    return [
        path
        for command in commands
        for path in subprocess.run(
            ["git", *command], check=True, capture_output=True, text=True
        ).stdout.splitlines()
    ]


def _folder(path: str) -> str:
    return PurePath(path).parts[1]
