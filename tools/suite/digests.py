"""What the packages passed their tests with: `tests/passed.json`.

A revision cannot tell what a change touches, as continuous integration tests `main` itself. So each
part of `make test-all` that a package passes writes down two digests of that package: of its *own*
files (sources and tests), and of the files of all that it *imports*. What differs is touched.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.imports import of_packages, reached
from tools.suite.ownership import EVERYTHING, owners

ROOT = Path(__file__).parents[2]
PASSED = ROOT / "tests" / "passed.json"

_BY_NAME = {"workers": {"tracer", "repro"}}
"""Packages that start others as processes, by name."""
_LENGTH = 16
"""Hexadecimal digits of a digest: 64 bits, where a row has one rival, its successor."""


def files(root: Path = ROOT) -> list[str]:
    """Return the paths of the repository's files: those that git tracks, and new ones."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout.decode()
    # One that is deleted is still listed until that is committed.
    return sorted(path for path in {*listed.split("\0")} - {""} if (root / path).is_file())


def folders(root: Path = ROOT) -> frozenset[str]:
    """Return the names of the folders of tests."""
    tests = root / "tests"
    return frozenset(file.relative_to(tests).parts[0] for file in tests.glob("*/**/test_*.py"))


@dataclass(frozen=True)
class Row:
    """The digests of a package."""

    own: str
    imports: str


class Tree:
    """The files of the repository as they are now, by package."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    @cached_property
    def _files(self) -> dict[str, list[str]]:
        names = folders(self._root)
        by_owner: dict[str, list[str]] = {}
        for path in files(self._root):
            for owner in owners(path, names):
                by_owner.setdefault(owner, []).append(path)
        return by_owner

    @cached_property
    def _own(self) -> dict[str, str]:
        return {owner: self._digest(paths) for owner, paths in self._files.items()}

    @cached_property
    def _imports(self) -> dict[str, set[str]]:
        imports = of_packages()
        return {name: imports[name] | _BY_NAME.get(name, set()) for name in imports}

    @property
    def packages(self) -> set[str]:
        """All packages, and folders of tests, that own files."""
        return {*self._files} - {EVERYTHING}

    def row(self, package: str) -> Row:
        """Return the digests of a package; what all tests depend on is part of its own files."""
        own = _joined(self._own.get(package, ""), self._own.get(EVERYTHING, ""))
        # The folders that no package has the name of test the whole product.
        imported = reached(self._imports, package) if package in self._imports else {*self._imports}
        others = sorted(imported - {package})
        return Row(own, _joined(*(f"{name}:{self._own.get(name, '')}" for name in others)))

    def _digest(self, paths: Iterable[str]) -> str:
        content = hashlib.sha256()
        for path in paths:
            inside = hashlib.sha256(self._content(path)).digest()
            content.update(path.encode() + b"\0" + inside)
        return content.hexdigest()[:_LENGTH]

    def _content(self, path: str) -> bytes:
        content = (self._root / path).read_bytes()
        if path == "pyproject.toml":
            project = tomllib.loads(content.decode())
            # Tests do not depend on what checks them, import contracts above all.
            tools = {tool: project["tool"][tool] for tool in ("hatch", "pytest")}
            content = json.dumps({**project, "tool": tools}).encode()
        return content


def _joined(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_LENGTH]


def read(file: Path = PASSED) -> dict[str, dict[str, Row]]:
    """Return the rows of each part, by package."""
    if not file.is_file():
        return {}
    parts = json.loads(file.read_text(encoding="utf-8"))
    return {
        part: {package: Row(*digests) for package, digests in rows.items()}
        for part, rows in parts.items()
    }


def write(part: str, rows: Mapping[str, Row], file: Path = PASSED) -> None:
    """Write the rows of a part in place of its earlier ones."""
    parts = {**read(file), part: rows}
    lines = []
    for name in sorted(parts):
        inside = ",\n".join(
            f'    "{package}": ["{row.own}", "{row.imports}"]'
            for package, row in sorted(parts[name].items())
        )
        lines.append(f'  "{name}": {{\n{inside}\n  }}')
    # A line a package: parts that run on several machines are merged by git.
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@dataclass(frozen=True)
class Touched:
    """What differs from what passed."""

    own: frozenset[str]
    """Packages whose own files differ."""
    imports: frozenset[str]
    """Packages of which only what they import differs."""


def touched(tested: Mapping[str, str], root: Path = ROOT) -> Touched:
    """Return what differs from what passed.

    Args:
        tested: The part that has all tests of each package, by package.
        root: Of the repository.
    """
    tree, passed = Tree(root), read(root / "tests" / "passed.json")
    own, imports = set[str](), set[str]()
    for package, part in tested.items():
        now, before = tree.row(package), passed.get(part, {}).get(package)
        if before is None or before.own != now.own:
            own.add(package)
        elif before.imports != now.imports:
            imports.add(package)
    return Touched(frozenset(own), frozenset(imports))
