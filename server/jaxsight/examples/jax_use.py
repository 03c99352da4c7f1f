"""Which functions of a module use JAX, and are not there for something else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxsight.source.definitions import Function
from jaxsight.source.module import Module, ModuleChunk

_LIBRARIES = frozenset({"jax", "jaxlib", "flax", "equinox", "haiku", "optax"})
_NOT_TRACED = re.compile(r"main|test_\w*|setup\w*|pytest_\w*|_?plot\w*")
_PROGRAM = re.compile(r"main|test\w*")
_ARRAYS = r"\.(?:shape|reshape|at\[|astype|T)\b"
_OPERATORS = r"[\w)\]] (?:@|\*\*?|[-+/]) [-\w(\[]|[\w)\]]\*\*[-\w(]"


@dataclass(frozen=True, slots=True)
class JaxUse:
    """The names that a module imports from JAX and from libraries of its transformations."""

    uses: re.Pattern[str] | None
    """Matches these names, and uses of arrays; `None` if the module imports none."""

    @classmethod
    def of(cls, module: Module) -> JaxUse:
        names = {
            alias
            for chunk in module.chunks
            if chunk.broken is None
            for alias, name in chunk.name_effects.imports
            if name.partition(".")[0] in _LIBRARIES
        }
        if not names:
            return cls(None)
        imported = "|".join(map(re.escape, sorted(names)))
        names_or_arrays = rf"\b(?:{imported})\b|{_ARRAYS}"
        named = cls(re.compile(names_or_arrays))
        if any(named.by(*each) for each in module.functions):
            return named
        # Nothing else shows that they are there for arrays.
        return cls(re.compile(rf"{names_or_arrays}|{_OPERATORS}"))

    def by(self, chunk: ModuleChunk, function: Function) -> bool:
        """Return whether a function uses JAX in its body or its decorators.

        Tests, plots and `main` do not count: they are not there to be traced.
        """
        return may_be_traced(function) and self.mentioned(chunk, function)

    def shows(self, chunk: ModuleChunk, function: Function) -> bool:
        """Return whether a function can show something: it uses JAX, or is a program that does."""
        is_there = may_be_traced(function) or is_program(function)
        return is_there and self.mentioned(chunk, function)

    def mentioned(self, chunk: ModuleChunk, function: Function) -> bool:
        """Return whether a function, of any kind, uses JAX in its body or its decorators."""
        if self.uses is None:
            return False
        lines = chunk.text.split("\n")[function.body_start.line : function.range.end.line + 1]
        return self.uses.search("\n".join((*function.decorators, *lines))) is not None


def may_be_traced(function: Function) -> bool:
    """Return whether a function may be there to be traced: tests, plots and `main` are not."""
    return _NOT_TRACED.fullmatch(function.qualname.rpartition(".")[2]) is None


def is_program(function: Function) -> bool:
    """Return whether a function is run as a program, and shows what a run of it does."""
    return is_program_name(function.qualname)


def is_program_name(name: str) -> bool:
    """Return whether the function of a qualified name is run as a program."""
    return _PROGRAM.fullmatch(name.rpartition(".")[2]) is not None
