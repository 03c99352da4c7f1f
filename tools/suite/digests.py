"""What the packages passed their tests with: `tests/passed.json`.

A revision cannot tell what a change touches, as continuous integration tests `main` itself. So each
part of `make test-all` that a package passes writes down two digests of that package: of its *own*
files (sources and tests), and of the files of all that it *imports*. What differs is touched.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
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

_BY_NAME = {"workers": {"tracer", "jaxsight_repro"}}
"""Packages that start others as processes, by name."""
_IMPORT = re.compile(r"^ *from ((?:tests|tools)[.\w]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
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
            for owner in self._with_users(owners(path, names), path):
                by_owner.setdefault(owner, []).append(path)
        return by_owner

    def _with_users(self, owned_by: frozenset[str], path: str) -> Iterable[str]:
        """Return whose a path is, and whose tests import it (`from tests.vscode.window import`)."""
        if not path.startswith(("tests/", "tools/")) or EVERYTHING in owned_by:
            return owned_by
        module = ".".join(path.removesuffix(".py").removesuffix("/__init__").split("/"))
        return owned_by | self._users.get(module, frozenset())

    @cached_property
    def _users(self) -> dict[str, frozenset[str]]:
        """The folders of tests that import each module of tests or tools, through others too."""
        used: dict[str, set[str]] = {}
        tests = folders(self._root)
        for path in files(self._root):
            if path.startswith(("tests/", "tools/")) and path.endswith(".py"):
                module = ".".join(path.removesuffix(".py").removesuffix("/__init__").split("/"))
                text = (self._root / path).read_text(encoding="utf-8")
                for base, names in _IMPORT.findall(text):
                    for name in ("", *re.findall(r"\w+", names)):
                        used.setdefault(f"{base}.{name}" if name else base, set()).add(module)
        found: dict[str, frozenset[str]] = {}
        for module in used:
            waiting, reached_by = [module], set[str]()
            while waiting:
                for user in used.get(waiting.pop(), set()) - reached_by:
                    reached_by.add(user)
                    waiting.append(user)
            users = {user.split(".")[1] for user in reached_by if user.startswith("tests.")}
            found[module] = frozenset(users & tests)
        return found

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
    if not file.is_file() or not file.stat().st_size:
        return {}
    parts = json.loads(file.read_text(encoding="utf-8"))
    return {
        part: {package: Row(*digests) for package, digests in rows.items()}
        for part, rows in parts.items()
    }


def write(part: str, rows: Mapping[str, Row], file: Path = PASSED) -> None:
    """Write the rows of a part in place of its earlier ones."""
    with file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parts may end at the same time
        _write({**read(file), part: rows}, file)


def _write(parts: Mapping[str, Mapping[str, Row]], file: Path) -> None:
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


def touched(tested: Mapping[str, Iterable[str]], root: Path = ROOT) -> Touched:
    """Return what differs from what passed.

    Args:
        tested: The parts that together have all tests of each package, by package.
        root: Of the repository.
    """
    tree, passed = Tree(root), read(root / "tests" / "passed.json")
    own, imports = set[str](), set[str]()
    for package, parts in tested.items():
        now = tree.row(package)
        before = [passed.get(part, {}).get(package) for part in parts]
        if any(row is None or row.own != now.own for row in before):
            own.add(package)
        elif any(row != now for row in before):
            imports.add(package)
    return Touched(frozenset(own), frozenset(imports))
