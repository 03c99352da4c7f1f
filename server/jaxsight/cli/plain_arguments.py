"""Convert the arguments of commands as Typer does, without pydantic.

Since 0.27, Typer converts each argument with pydantic, also one that is not given, and importing it
takes 0.1 s, as long as most commands. What has only one meaning is converted here: texts, paths,
the exact names of choices, and defaults. Typer converts the rest, such as numbers, and reports what
is invalid.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Protocol, get_args, get_origin

import typer.core


class _Described(Protocol):
    """A parameter of a command, as Typer describes it."""

    annotation: object
    choices: tuple[object, ...] | None


class _Parameter(Protocol):
    """A parameter of a command, as its parser sees it."""

    multiple: bool
    nargs: int


class _Conversion(Protocol):
    """Converts the values of a parameter (`typer.core.RuntimeParam`, in Typer 0.27 to 0.29)."""

    def coerce(self, value: object, param: _Parameter, ctx: object) -> object:
        """Return the value, or the values, as the parameter's type."""
        ...


class _Ambiguous(Exception):
    """Only Typer knows what a value means."""


class _PlainConversion:
    """Converts the values of a parameter, with Typer's conversion where they are not plain."""

    def __init__(self, described: _Described, typers: Callable[[_Described], _Conversion]) -> None:
        self._described = described
        self._typers = typers

    def coerce(self, value: object, param: _Parameter, ctx: object) -> object:
        """Return the value, or the values, as the parameter's type."""
        is_several = param.multiple or param.nargs == -1
        if value is None:
            return () if is_several else None
        try:
            if isinstance(value, list | tuple) and is_several:
                return [self._plain(each) for each in value]
            return self._plain(value)
        except _Ambiguous:
            return self._typers(self._described).coerce(value, param=param, ctx=ctx)

    def _plain(self, value: object) -> object:
        kind = self._described.annotation
        if get_origin(kind) is list:
            (kind,) = get_args(kind)
        for choice in self._described.choices or ():
            if value in (choice, choice.value if isinstance(choice, Enum) else choice):
                return choice
        if kind is str and isinstance(value, str):
            return str(value)
        if kind is Path and isinstance(value, str | Path):
            path = Path(value)
            if os.access(path, os.R_OK) or not os.path.exists(path):  # noqa: PTH110 - never raises
                return path
        elif type(value) is kind:
            return value
        raise _Ambiguous


def convert_without_pydantic() -> None:
    """Convert plain arguments here from now on; no change before Typer 0.27."""
    typers = getattr(typer.core, "build_runtime_param", None)
    if typers is not None:
        vars(typer.core)["build_runtime_param"] = lambda described: _PlainConversion(
            described, typers
        )
