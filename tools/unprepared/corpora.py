"""The source distributions whose files are opened, and the functions in them that count."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "unprepared.txt"
UNPACKED = ROOT / "build" / "unprepared"
_NAMES = frozenset(
    {"eqx", "hk", "jax", "jnp", "jr", "jrandom", "lax", "linen", "nn", "nnx", "optax"}
)
"""Names by which a function is known to use JAX."""
_TEST = re.compile(r"test_.*|.*_test")


@dataclass(frozen=True)
class Corpus:
    """The files of one distribution below one folder."""

    name: str
    distribution: str
    folder: str = ""

    def unpacked(self) -> Path:
        """Return where its distribution is unpacked; it is downloaded at the first time."""
        lines = LOCK.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
        pin = next(line for line in lines if line.startswith(f"{self.distribution}=="))
        found = UNPACKED / pin.split()[0].replace("==", "-")
        if not found.is_dir():
            with tempfile.TemporaryDirectory() as folder:
                wanted = Path(folder, "wanted.txt")
                wanted.write_text(pin, encoding="utf-8")
                options = ("--no-binary=:all:", "--no-deps", "--require-hashes", "--quiet")
                subprocess.run(
                    [sys.executable, "-m", "pip", "download", *options, "-r", wanted],
                    cwd=folder,
                    check=True,
                )
                with tarfile.open(next(Path(folder).glob("*.tar.gz"))) as archive:
                    archive.extractall(UNPACKED, filter="data")
        return found

    def files(self) -> list[Path]:
        """Return the files and notebooks with functions that use JAX."""
        below = self.unpacked() / self.folder
        every = (p for p in sorted(below.rglob("*")) if p.suffix in (".py", ".ipynb"))
        return [path for path in every if "config" not in path.name and any(functions(path))]


CORPORA = (
    Corpus("optax", "optax"),
    Corpus("equinox", "equinox"),
    Corpus("numpyro", "numpyro"),
    Corpus("blackjax", "blackjax"),
    Corpus("distrax", "distrax"),
    Corpus("flax-examples", "flax", "examples"),
)


@dataclass(frozen=True)
class CountedFunction:
    """A function whose body mentions JAX; lines and columns are from 0."""

    name: str
    """As Python's `__qualname__`."""
    line: int
    column: int
    last: int


def text_of(path: Path) -> str:
    """Return the text of a file; of a notebook, its cells."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    lines = [line for cell in cells for line in ("".join(cell["source"]) + "\n\n").split("\n")]
    return "\n".join(f"# {e}" if e.lstrip().startswith(("%", "!")) else e for e in lines)


def functions(path: Path) -> Iterator[CountedFunction]:
    """Yield the functions of a file that mention JAX; none if it does not parse."""
    try:
        text = text_of(path)
        tree = ast.parse(text)
    except (SyntaxError, ValueError, KeyError):
        return
    if "jax" in text:
        yield from _functions(tree, "", text.split("\n"))


def _functions(node: ast.AST, prefix: str, lines: list[str]) -> Iterator[CountedFunction]:
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{prefix}{child.name}."
        if isinstance(child, ast.FunctionDef):
            within = (each for statement in child.body for each in ast.walk(statement))
            if any(isinstance(each, ast.Name) and each.id in _NAMES for each in within):
                line = child.lineno - 1
                column = lines[line].index("def ") + 4
                last = child.end_lineno or child.lineno
                yield CountedFunction(f"{prefix}{child.name}", line, column, last - 1)
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner += "<locals>."
        yield from _functions(child, inner, lines)


def is_test(path: Path) -> bool:
    """Return whether a file holds tests."""
    return _TEST.fullmatch(path.stem) is not None


def program_of(path: Path, root: Path) -> Path | None:
    """Return the program that runs a file: itself if it is a test or an example, or its test."""
    if is_test(path) or "examples" in path.relative_to(root).parts:
        return path
    names = {f"{path.stem}_test.py", f"test_{path.stem.lstrip('_')}.py"}
    return next((p for p in sorted(root.rglob("*.py")) if p.name in names), None)
