"""The package stays easy to look around in: small folders, short modules, few long functions."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from tools.lint.checkout import Checkout, Offender

MODULES = 14
"""In a folder, besides its `__init__`: a list that is read at a glance."""
LINES = 500
"""Of a module: what is read in one sitting."""
LONG = 60
"""Lines of a function that is long: it no longer fits on a screen. Its docstring does not count:
that of a command has the texts of its options."""
LONG_FUNCTIONS = 5
"""In the whole package: some functions are tables, and no shorter in pieces."""
_PACKAGE = re.compile(r"server/jaxsight(?:_\w+|/\w+)/__init__\.py")


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield folders, modules and functions above the limits."""
    folders = Counter(
        str(PurePosixPath(module.path).parent)
        for module in checkout.modules
        if not module.path.endswith("/__init__.py")
    )
    for folder, count in folders.items():
        if count > MODULES:
            yield Offender(folder, 1, f"{count} modules in a folder, more than {MODULES}")
    long = []
    for module in checkout.modules:
        purpose = ast.get_docstring(module.tree) or ""
        if _PACKAGE.fullmatch(module.path) and "never" not in purpose:
            yield Offender(module.path, 1, "the package does not say what it must never do")
        if not module.text:
            yield Offender(module.path, 1, "an empty file")
        lines = len(module.text.splitlines())
        if lines > LINES:
            yield Offender(module.path, lines, f"{lines} lines in a module, more than {LINES}")
        for function in module.functions():
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if ast.get_docstring(function, clean=False) is not None:
                length -= (function.body[0].end_lineno or 0) - function.body[0].lineno + 1
            if length > LONG:
                message = (
                    f"`{function.name}` has {length} lines; more than {LONG_FUNCTIONS} functions"
                    f" have more than {LONG}"
                )
                long.append(Offender(module.path, function.lineno, message))
    if len(long) > LONG_FUNCTIONS:
        yield from long
