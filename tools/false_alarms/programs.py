"""Programs of many kinds: examples in docstrings, programs drawn by lot, files of a folder."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import indent
from types import ModuleType

from tests.truth import programs as drawn

_MODULES = (
    "jax", "jax.numpy", "jax.lax", "jax.nn", "jax.tree", "jax.tree_util", "jax.numpy.linalg",
    "jax.numpy.fft", "jax.scipy.linalg", "jax.scipy.signal", "jax.scipy.stats", "optax",
    "flax.linen", "flax.nnx",
)  # fmt: skip
"""Modules with examples in docstrings; those that are not installed have none."""
_EACH = 12
"""Docstrings of a module that are drawn."""
_UNSUITABLE = re.compile(r"config\.update|input\(|distributed\.init|^\s*[%!]", re.MULTILINE)
"""What no program may do that shares a process with others, and lines of notebooks."""


def of_docstrings(seed: int) -> Iterator[tuple[str, str]]:
    """Yield programs of examples in docstrings, every second one in a function `main`."""
    for name in _MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        every = sorted(_examples(module).items())
        chosen = random.Random(f"{seed}{name}").sample(every, min(_EACH, len(every)))
        for number, (function, text) in enumerate(chosen):
            head = f"import jax\nimport jax.numpy as jnp\nimport numpy as np\nimport {name}\n"
            if name.startswith(("flax", "optax")):
                head += "import optax\nimport flax.linen as nn\nfrom flax import nnx\n"
            if number % 2 and "__future__" not in text:
                text = f'\ndef main():\n{indent(text, "    ")}\n\nif __name__ == "__main__":\n    main()\n'
            yield f"{name}.{function}", f"{head}{text}"


def of_lot(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield programs that are drawn by lot, but for those that use a key twice: JX403 is right."""
    for number in range(seed * count, (seed + 1) * count):
        text = drawn.program(number)
        if text.count("random.split(key") < 2:
            yield f"drawn {number}", text


def of_folder(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the programs in a folder: Python files, notebooks, and code in Markdown."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".py":
            yield str(path.relative_to(folder)), path.read_text()
        elif path.suffix == ".ipynb":
            cells = json.loads(path.read_text())["cells"]
            code = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
            yield str(path.relative_to(folder)), "\n\n".join(code)
        elif path.suffix == ".md":
            blocks = re.findall(
                r"^```\s*\{?(?:python|code-cell)[^\n]*\n(.*?)^```",
                path.read_text(),
                re.MULTILINE | re.DOTALL,
            )
            yield (
                str(path.relative_to(folder)),
                "\n\n".join(re.sub(r"^:.*\n|^---\n", "", b, flags=re.MULTILINE) for b in blocks),
            )


def suitable(programs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the programs that can be tried."""
    for name, text in programs:
        try:
            ast.parse(text)
        except SyntaxError:
            continue
        if "jax" in text and not _UNSUITABLE.search(text):
            yield name, text


def _examples(module: ModuleType) -> dict[str, str]:
    """Return programs by the public names of a module whose docstrings have several examples."""
    found: dict[str, str] = {}
    for name, value in vars(module).items():
        text = (
            "" if name.startswith("_") or inspect.ismodule(value) else inspect.getdoc(value) or ""
        )
        try:
            examples = doctest.DocTestParser().get_examples(text)
        except ValueError:
            continue
        if len(examples) > 1 and not any(each.exc_msg for each in examples):
            found[name] = "".join(each.source for each in examples)
    return found
