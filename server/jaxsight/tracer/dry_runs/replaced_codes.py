"""The codes of a file's functions, which a dry run replaces by rewritten ones."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType

from jaxsight.rewriting.compiling import codes_in
from jaxsight.tracer.isolation import code_origins


@dataclass(slots=True)
class ReplacedCodes:
    """The functions whose codes were replaced, with their own ones."""

    replaced: list[tuple[FunctionType, CodeType]] = field(default_factory=list)

    def replace(self, function: FunctionType, codes: Mapping[tuple[str, int], CodeType]) -> None:
        """Give a function its rewritten code, if that has the same variables."""
        old = function.__code__
        new = codes.get((old.co_qualname, old.co_firstlineno))
        # Python refuses a code with another number of free variables.
        if new is not None and new.co_freevars == old.co_freevars:
            self.replaced.append((function, old))
            function.__code__ = new

    def restore(self) -> None:
        # Reversed: a function that was replaced twice gets its first code back.
        for function, code in reversed(self.replaced):
            function.__code__ = code


def functions_in(values: Iterable[object], depth: int = 2) -> Iterator[FunctionType]:
    """Yield the plain functions among a module's values, those under decorators, and methods."""
    for value in values:
        inner = value
        for _ in range(code_origins.WRAPPERS):
            if isinstance(inner, FunctionType):
                yield inner
            if isinstance(inner, staticmethod | classmethod | MethodType):
                inner = inner.__func__
            elif callable(inner) and callable(below := _wrapped(inner)):
                inner = below
            else:
                break
        if isinstance(value, type) and depth:
            yield from functions_in(tuple(vars(value).values()), depth - 1)


def _wrapped(value: object) -> object:
    try:  # a command of click has a `callback`
        return inspect.getattr_static(value, "__wrapped__", None) or getattr(
            value, "__wrapped__", None if isinstance(value, type) else vars(value).get("callback")
        )
    except Exception:  # noqa: BLE001 - user code
        return None


def codes_of(names: set[str], code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Return the codes of a module's functions of these names, by name and first line."""
    codes = (each for each in codes_in(code) if each.co_qualname in names)
    return {(each.co_qualname, each.co_firstlineno): each for each in codes}
