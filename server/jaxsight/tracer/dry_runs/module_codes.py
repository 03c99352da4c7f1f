"""The functions of modules, and the rewritten codes of those, which are kept between runs."""

from __future__ import annotations

import ast
import contextlib
import inspect
import time
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType

from jaxsight.lru import Recent
from jaxsight.tracer.dry_runs import rewriting
from jaxsight.tracer.isolation import code_origins

_ELSEWHERE = 1 << 20
"""The first number in rewritten modules, whose functions are not noted: no number of the file's."""
_MODULES = 256
"""Modules whose rewritten codes are kept, a choice: those of a large project."""

_ByPlace = Mapping[tuple[str, int], CodeType]


class ModuleCodes:
    """The rewritten codes of modules, by file and text."""

    def __init__(self) -> None:
        self._codes: Recent[tuple[str, str], _ByPlace] = Recent(_MODULES)

    def of(self, file: str, text: str, deadline: float) -> _ByPlace | None:
        """Return the codes of a module; `None` if the processor time is over."""
        codes = self._codes.get((file, text))
        if codes is None and time.process_time() < deadline:
            codes = {}
            with contextlib.suppress(SyntaxError, ValueError, RecursionError):
                tree = ast.parse(text)
                names = rewriting.rewrite(tree, _ELSEWHERE).names
                codes = codes_of(names, compile(tree, file, "exec", dont_inherit=True))
            self._codes.put((file, text), codes)
        return codes


def codes_of(names: frozenset[str], code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Return the codes of a module's functions of these names, by name and first line."""
    codes = (each for each in code_origins.codes_in(code) if each.co_qualname in names)
    return {(each.co_qualname, each.co_firstlineno): each for each in codes}


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
    try:
        return inspect.getattr_static(value, "__wrapped__", None) or getattr(
            value, "__wrapped__", None
        )
    except Exception:  # noqa: BLE001 - user code
        return None
