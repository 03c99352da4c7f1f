"""What people are told to do in a terminal; an editor's copy of the server has no terminal."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec


@cache
def has_terminal() -> bool:
    """Return whether the command `jaxsight` is part of this installation."""
    return find_spec("jaxsight.cli") is not None


def instruction(command: str, action: str) -> str:
    """Return ``run `jaxsight COMMAND` ``, or the editor's action where there is no terminal."""
    return f"run `jaxsight {command}`" if has_terminal() else action


def unasked(command: str) -> str:
    """Return what to do where an editor cannot ask whether to do it."""
    remedy = f"; run `jaxsight {command}` in a terminal" if has_terminal() else ""
    return f"this editor cannot ask questions{remedy}"
