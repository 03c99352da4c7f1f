"""The text of JAX's bug report form for a repro.

Whatever comes from the program (its source, its messages) stays inside fences and code spans that
it cannot end.
"""

from __future__ import annotations

import re
from pathlib import Path

from jaxsight.text.markdown import fenced, span
from jaxsight.workers.own_python import with_packages
from jaxsight_repro import running
from jaxsight_repro.failures import EXCEPTION, FINISHED, LONGEST_MESSAGE, RunFailure

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
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]}\n[...]"
    parts = [
        "### Description",
        _summary(failure),
        fenced(repro_text.strip("\n")),
        *([_ATTACHED] if ".npz" in repro_text else []),
        "It fails with:",
        fenced(message, ""),
        f"### {_SYSTEM}",
        fenced(_NODE.sub("node='...'", environment.strip()), ""),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(failure: RunFailure) -> str:
    match failure.kind:
        case "crash":
            return f"This program is {failure.headline}:"
        case "hang":
            return "This program does not finish:"
        case "memory":
            return "This program exceeds its memory limit:"
        case "exception" if failure.name == "AssertionError":
            return f"This program computes something wrong ({span(failure.headline)}):"
        case _:
            return f"This program raises {span(failure.name or 'an exception')}:"


_INFORMATION = "import jax; print(jax.print_environment_info(return_string=True))"
_MOST_SECONDS = 120.0
"""For `import jax` and its devices, chosen: fewer miss a cold disk, more keep the user waiting for
a driver that hangs."""


def information(python: str) -> str:
    """Return what `jax.print_environment_info()` prints; empty if JAX does not start."""
    own = with_packages(python, "-c", _INFORMATION)
    try:
        ran = running.run_command(
            own.command, timeout=_MOST_SECONDS, environment=own.environment, folder=Path(own.folder)
        )
    except OSError:
        return ""
    return ran.stdout.strip() if ran.failure.kind == FINISHED else ""
