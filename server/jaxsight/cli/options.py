"""The arguments and options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from jaxsight.cli.parameters import Option, Positional


class InputsChoice(StrEnum):
    """Which example inputs are used."""

    ALL = "all"
    WRITTEN = "written"


WhichInputs = Annotated[
    InputsChoice,
    Option(
        "--inputs",
        help="Example inputs to use. [cyan]written[/cyan]: those in docstrings, annotations "
        "and settings; [cyan]all[/cyan]: also recorded runs, calls, and proposed inputs "
        "that can be traced, which are marked as assumed.",
    ),
]

Function = Annotated[
    str,
    Positional(
        metavar="FILE:FUNCTION",
        help="Function, or method as [cyan]Class.method[/cyan]; [cyan]-[/cyan] is the text on "
        "stdin.",
    ),
]

SetName = Annotated[
    str | None,
    Option("--set", metavar="NAME", help="Example set to use.", show_default="the first"),
]

Python = Annotated[
    str | None,
    Option(
        metavar="PYTHON",
        help="Python interpreter with JAX installed.",
        show_default="auto-detected",
    ),
]


def _target(default: str, more: str = "") -> Option:
    return Option(
        "--target",
        "-t",
        metavar="TARGET",
        help=f"Target device, as listed by [cyan]jaxsight targets[/cyan].{more}",
        show_default=default,
    )


Target = Annotated[str | None, _target("the project's")]

Targets = Annotated[list[str] | None, _target("the project's", " Repeatable.")]

LockTargets = Annotated[
    list[str] | None, _target("those of jaxsight.lock, else the project's", " Repeatable.")
]

Allow = Annotated[
    list[str] | None,
    Option(
        metavar="ssh://HOST|PYTHON",
        help="Allow the project's settings and docstrings to use this host, or this interpreter "
        "outside of the project. Repeatable.",
    ),
]

Against = Annotated[
    str | None,
    Option(
        metavar="FILE:FUNCTION|REVISION",
        help="Compare with another function, or with the same function in a git revision.",
    ),
]

StdinFunction = Annotated[
    str | None,
    Option(
        "--stdin-filename",
        metavar="FILE:FUNCTION",
        help="Function of the text on stdin, and the file that it has, for settings and imports.",
    ),
]

AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
