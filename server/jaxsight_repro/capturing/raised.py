"""Exceptions as plain data, from which a class of the same name can be written."""

from __future__ import annotations

import builtins
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that the user's code raised.

    Attributes:
        name: the qualified name of its class.
        module: the module of its class.
        base: the built-in class that its class is, or is derived from.
        args: what to construct it with.
        is_text: whether its text is its only argument, and not what `base` makes of it.
    """

    name: str
    module: str
    base: str
    args: tuple[object, ...]
    is_text: bool = False

    @property
    def is_builtin(self) -> bool:
        """Whether it is of a built-in class, which can be called as its arguments say."""
        return self.module == "builtins" and self.name == self.base and not self.is_text


def raised_of(error: BaseException) -> Raised:
    """Return an exception as plain data."""
    cls = type(error)
    text = str(error)
    for base in cls.__mro__:
        if base.__module__ != "builtins" or getattr(builtins, base.__name__, None) is not base:
            continue
        for args in (error.args, (text,)):
            made = _text_of(base, args)
            if made == text or (made is not None and args == (text,)):
                names = cls.__qualname__, cls.__module__, base.__name__
                return Raised(*names, args, is_text=made != text)
    return Raised(cls.__qualname__, cls.__module__, "Exception", (text,))


def _text_of(base: type, args: tuple[object, ...]) -> str | None:
    """Return the text of a built-in class's exception; None if it cannot be made or written."""
    if not all(isinstance(arg, (str, int, float, type(None))) for arg in args):
        return None
    try:
        return str(base(*args))
    except Exception:  # noqa: BLE001 - what its constructor raises
        return None
