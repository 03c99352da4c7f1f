"""The arguments and options that several commands have, as `parameters.py` reads them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated


class InputsChoice(StrEnum):
    """Which example inputs are used."""

    ALL = "all"
    WRITTEN = "written"


WhichInputs = Annotated[
    InputsChoice,
    "(--inputs): Example inputs to use. [cyan]written[/cyan]: those in docstrings, "
    "annotations and settings; [cyan]all[/cyan]: also recorded runs, calls, and proposed "
    "inputs that can be traced, which are marked as assumed.",
]

Function = Annotated[
    str,
    "(FILE:FUNCTION): Function, or method as [cyan]Class.method[/cyan]; [cyan]-[/cyan] is the"
    " text on stdin.",
]

SetName = Annotated[str | None, "(--set NAME): Example set to use. [default: the first]"]

Python = Annotated[
    str | None,
    "(PYTHON): Python interpreter with JAX installed. [default: auto-detected]",
]

_TARGET = "(--target -t TARGET): Target device, as listed by [cyan]jaxsight targets[/cyan]."

Target = Annotated[str | None, f"{_TARGET} [default: the project's]"]

Targets = Annotated[list[str] | None, f"{_TARGET} Repeatable. [default: the project's]"]

LockTargets = Annotated[
    list[str] | None,
    f"{_TARGET} Repeatable. [default: those of jaxsight.lock, else the project's]",
]

Allow = Annotated[
    list[str] | None,
    "(ssh://HOST|PYTHON): Allow the project's settings and docstrings to use this host, or "
    "this interpreter outside of the project. Repeatable.",
]

Against = Annotated[
    str | None,
    "(FILE:FUNCTION|REVISION): Compare with another function, or with the same function in a "
    "git revision.",
]

StdinFunction = Annotated[
    str | None,
    "(--stdin-filename FILE:FUNCTION): Function of the text on stdin, and the file that it "
    "has, for settings and imports.",
]

AsJson = Annotated[bool, "(--json): Print JSON."]
