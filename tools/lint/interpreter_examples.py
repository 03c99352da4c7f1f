"""Each example of an interpreter is short, and on the page."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tools.lint.checkout import Checkout, Offender

PAGE = "docs/source/interpreters.md"
FOLDER = "examples/interpreters"
LINES = 40
"""Besides imports and blanks: the page says how little an interpreter needs."""


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield examples that are long or not named."""
    page = checkout.text(PAGE)
    for path in checkout.files(f"{FOLDER}/*.py"):
        module = checkout.module(path)
        head = (ast.Expr, ast.Import, ast.ImportFrom)
        code = [node.lineno for node in module.tree.body if not isinstance(node, head)]
        start = min(code, default=1)
        lines = [line for line in module.text.splitlines()[start - 1 :] if line.strip()]
        if len(lines) > LINES:
            yield Offender(path, start, f"{len(lines)} lines in an example, more than {LINES}")
        if f"{FOLDER}/{PurePosixPath(path).name}" not in page:
            yield Offender(path, 1, f"not named in {PAGE}")
