"""The names by which code in a module can refer to a class, a function or another object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MethodType, ModuleType


class Reachable:
    """The globals of a module, as expressions read them."""

    def __init__(self, namespace: Mapping[str, object]) -> None:
        self.namespace = namespace

    def name_of(self, value: object) -> str | None:
        """Return an expression for this very object; `None` if the module has no name for it."""
        for name, own in tuple(self.namespace.items()):
            if own is value and name.isidentifier() and not name.startswith("__"):
                return name
        if isinstance(value, MethodType):
            holder = self.name_of(value.__self__)
            return f"{holder}.{value.__func__.__name__}" if holder is not None else None
        return next(self._in_modules(value), None)

    def module(self, name: str) -> str | None:
        """Return an expression for an imported module, by its full name; the shortest one."""
        found: list[str] = []
        for own, value in tuple(self.namespace.items()):
            if isinstance(value, ModuleType) and own.isidentifier():
                if value.__name__ == name:
                    found.append(own)
                elif name.startswith(f"{value.__name__}."):
                    path = name[len(value.__name__) + 1 :].split(".")
                    if getattr(_below(value, path), "__name__", "") == name:
                        found.append(".".join((own, *path)))
        return min(found, key=len, default=None)

    def _in_modules(self, value: object) -> Iterator[str]:
        """Yield the names of a class or function in the modules that the module imports."""
        qualname = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        home = getattr(value, "__module__", None)
        if not isinstance(qualname, str) or "<" in qualname:
            return
        within = qualname.split(".")
        for name, own in tuple(self.namespace.items()):
            if not name.isidentifier() or name.startswith("__"):
                continue
            is_holder = isinstance(own, type) and own.__name__ == within[0]
            if is_holder and len(within) > 1 and _below(own, within[1:]) is value:
                yield ".".join((name, *within[1:]))
            if not isinstance(own, ModuleType):
                continue
            inner: list[str] = []
            if isinstance(home, str) and home.startswith(f"{own.__name__}."):
                inner = home[len(own.__name__) + 1 :].split(".")
            for count in range(len(inner) + 1):
                path = [*inner[:count], *within]
                if not any(part.startswith("_") for part in path) and _below(own, path) is value:
                    yield ".".join((name, *path))


def _below(holder: object, path: list[str]) -> object:
    """Return what the attributes of modules and classes lead to, without running their code."""
    for part in path:
        try:
            holder = vars(holder)[part]
        except (TypeError, KeyError):
            return None
        if isinstance(holder, staticmethod):
            holder = holder.__func__
    return holder
