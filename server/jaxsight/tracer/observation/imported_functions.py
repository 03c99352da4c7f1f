"""The functions of imported modules of the project, whose calls are recorded as in the traced file.

The modules are compiled with call entries, whose numbers are negative: those of the traced file's
sites are not.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType

from jaxsight.rewriting.compiling import compiled
from jaxsight.rewriting.rewriter import CALLED, Rewriter
from jaxsight.tracer.importing import refused_statements

Record = Callable[[int, tuple[object, ...], Mapping[str, object]], None]
"""Records the arguments of a call by the number of its entry and the names of its module."""


@dataclass(frozen=True, slots=True)
class ImportedFunction:
    """A function of an imported module, by its qualified name."""

    file: str
    name: str
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A module's code, for one text, with the numbers of its entries."""

    text: str | bytes
    code: CodeType
    numbers: range


class ImportedFunctions:
    """The functions of the texts that were imported last, by the numbers of their entries."""

    def __init__(self) -> None:
        self.record: Record | None = None
        """Called with each call while a file is traced."""
        self._modules: dict[str, _Compiled] = {}
        self._functions: dict[int, ImportedFunction] = {}
        self._next = 1

    def install(self) -> None:
        """Make the entries of imported modules report to this object."""
        setattr(builtins, CALLED, self._called)

    def compiled(self, text: str | bytes, path: str) -> CodeType:
        """Return the code of a module with entries; that of an equal text is compiled once."""
        known = self._modules.get(path)
        if known is not None and known.text == text:
            return known.code
        rewriter = Rewriter(expressions=False)
        rewriter.first = self._next
        code = compiled(text, path, rewriter.rewrite, refused_statements.protect)
        if known is not None:  # not before, as a text may be none that compiles
            for number in known.numbers:
                del self._functions[number]
        entries = [site.entry for site in rewriter.sites if site.entry is not None]
        end = self._next + len(entries)
        numbers = range(-self._next, -end, -1)
        functions = (ImportedFunction(path, each.function, each.parameters) for each in entries)
        self._functions |= zip(numbers, functions, strict=True)
        self._modules[path] = _Compiled(text, code, numbers)
        self._next = end
        return code

    def function(self, number: int) -> ImportedFunction | None:
        """Return the function of an entry; `None` if its module's text has changed since."""
        return self._functions.get(number)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of all entries."""
        return frozenset(self._functions)

    def _called(self, number: int, arguments: tuple[object, ...]) -> None:
        if self.record is not None:
            self.record(-number, arguments, sys._getframe(1).f_globals)
