"""Lines of code below `server/` are no more than the section that `.ci/budget` names allows.

A line of code holds a token that is neither a comment nor part of a docstring, so that reasons
beside the code cost nothing. `python -m tools.lint.budget` prints the figures.
"""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.lint.checkout import Checkout, Module, Offender

SECTION = ".ci/budget"
OWN_LIMITS = ".ci/budget.toml"
SHARED_LIMITS = "../shared/budget.toml"
"""Takes precedence over the project's own copy where it is beside the checkout."""
IN_ALL = "all"

_NO_CODE = frozenset(
    {
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
        *(tokenize.ENCODING, tokenize.ENDMARKER),
    }
)


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield each limit that is exceeded."""
    section = checkout.text(SECTION).strip()
    limits = limits_of(checkout, section)
    if limits is None:
        yield Offender(SECTION, 1, f"unknown section `{section}` of the budget")
        return
    counts = lines_of_code(checkout)
    figures = {**counts, IN_ALL: sum(counts.values())}
    shown = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
    for name, limit in limits.items():
        if figures.get(name, 0) > limit:
            yield Offender(
                SECTION,
                1,
                f"{figures[name]:,} lines of code in `{name}` exceed the {limit:,}"
                f" of section `{section}` ({shown})",
            )


def limits_of(checkout: Checkout, section: str) -> Mapping[str, int] | None:
    """Return the limits of a section by package, or `None` if there is no such section."""
    path = SHARED_LIMITS if checkout.exists(SHARED_LIMITS) else OWN_LIMITS
    limits: Mapping[str, int] | None = tomllib.loads(checkout.text(path)).get(section)
    return limits


def lines_of_code(checkout: Checkout) -> Counter[str]:
    """Return the lines of code of each folder below `server/`."""
    counts = Counter[str]()
    for path in checkout.files("server/**/*.py"):
        counts[path.split("/")[1]] += count(checkout.module(path))
    return counts


def count(module: Module) -> int:
    """Count the lines of a module that hold a token, without comments and docstrings."""
    docstrings: set[int] = set()
    for node in module.nodes(ast.Expr):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = {
        number: line
        for number, line in enumerate(module.text.split("\n"), 1)
        if number not in docstrings and (stripped := line.strip()) and not stripped.startswith("#")
    }
    if any('"""' in line or "'''" in line or line.endswith("\\") for line in lines.values()):
        return len(_lines_with_tokens(module.text) - docstrings)
    return len(lines)  # no string spans lines, so that no tokens are needed, which take long


def _lines_with_tokens(text: str) -> set[int]:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


if __name__ == "__main__":
    for name, lines in lines_of_code(Checkout(Path(__file__).parents[2])).most_common():
        print(f"{name} {lines:,}")
