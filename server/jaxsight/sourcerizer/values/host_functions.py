"""Functions of the host that a module defines itself, so that they need not be passed to it."""

from __future__ import annotations


class HostFunction:
    """Takes the place of a callback's function; whoever writes the module defines `name` there."""

    def __init__(self, name: str) -> None:
        """Stand for a function that the module has under this name."""
        self.name = name
        self.__name__ = name

    def __call__(self, *_: object, **__: object) -> object:
        """Raise `NotImplementedError`."""
        raise NotImplementedError(f"{self.name} is only written")
