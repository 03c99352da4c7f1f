"""The text of JAX's bug report form for a repro.

Whatever comes from the program (its source, its messages) stays inside fences and code spans that
it cannot end.
"""

from __future__ import annotations

import re

from jaxsight_repro.failures import EXCEPTION, LONGEST_MESSAGE, RunFailure

_SYSTEM = "System info (python version, jaxlib version, accelerator, etc.)"
_NODE = re.compile(r"node='[^']*'")
"""The machine's name in what `jax.print_environment_info()` prints."""

_ATTACHED = "It reads arrays from the attached `.npz` file, which has its name."


def issue_text(repro_text: str, failure: RunFailure, environment: str) -> str:
    """Return a bug report as Markdown, with the headings of JAX's form.

    Args:
        environment: what `jax.print_environment_info()` prints.
    """
    message = failure.headline
    if failure.kind == EXCEPTION and failure.name and failure.message:
        message = f"{failure.name}: {failure.message}"
    parts = [
        "### Description",
        _summary(failure),
        fenced(repro_text.strip("\n"), "python"),
        *([_ATTACHED] if ".npz" in repro_text else []),
        "It fails with:",
        fenced(
            message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}\n[...]"
        ),
    ]
    parts += [f"### {_SYSTEM}", fenced(_NODE.sub("node='...'", environment.strip()))]
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str = "") -> str:
    """Return text in a fence that is longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + _longest_run(text))
    return f"{fence}{language}\n{text}\n{fence}"


def code(text: str) -> str:
    """Return text as a code span on one line, for a cell of a table or for prose."""
    line = " ".join(text.split()).replace("|", r"\|")
    ticks = "`" * (1 + _longest_run(line))
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _summary(failure: RunFailure) -> str:
    match failure.kind:
        case "crash":
            return f"This program is {failure.headline}:"
        case "hang":
            return "This program does not finish:"
        case "memory":
            return "This program exceeds its memory limit:"
        case "exception" if failure.name == "AssertionError":
            return f"This program computes something wrong ({code(failure.headline)}):"
        case _:
            return f"This program raises {code(failure.name or 'an exception')}:"
