"""Checks in the written function that the values built into the program are unchanged.

Arguments that are not arrays are built in. A value that can be written as an expression is compared
with it, and one with a complete `repr` by that. Of others only the type is compared, and the
written function's docstring explains it. One statement compares several, a loop the elements of a
list.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np

from jaxsight_source.calls.signature import Fixed
from jaxsight_source.errors import Unwritable
from jaxsight_source.text.exprs import call, modules_in, parsed
from jaxsight_source.text.layout import STEP, WIDTH, broken, flat
from jaxsight_source.text.statements import Raw
from jaxsight_source.values import spelling

_LONGEST = 120
"""The maximum length of a `repr` in a check, in characters: nobody reads longer ones."""

_IDENTICAL = (bool, type(None), enum.Enum)
"""Types whose values are compared with `is`."""


_NAME = "\0"
"""Stands for the argument in a condition, and for the index in a name."""

_INDEX = re.compile(r"\[(\d+)\]")

_LEAST_LOOPED = 3
"""How many elements of a list have the same check if a loop has it: fewer are as short without."""


@dataclass(frozen=True, slots=True)
class _Check:
    """A condition that is true for other values, the value as text, and the modules it names."""

    name: str
    condition: str
    shown: str
    modules: frozenset[str]

    @property
    def test(self) -> str:
        return self.condition.replace(_NAME, self.name)

    @property
    def told(self) -> str:
        return f"{self.name} = {self.shown}"


def checks(
    fixed: Sequence[Fixed], fresh: Callable[[str], str]
) -> tuple[list[ast.stmt], list[tuple[str, str]]]:
    """Return statements that reject other values of fixed arguments.

    Values that cannot be compared are explained, by name.

    Args:
        fixed: the arguments.
        fresh: returns an unused name.
    """
    apart: list[_Check] = []
    explained: list[tuple[str, str]] = []
    for argument in fixed:
        name = flat(argument.expr)
        expected = None
        if _is_common(argument.value):
            with contextlib.suppress(Unwritable):
                expected = spelling.value(argument.value)
        condition = _condition(argument.value, expected)
        if condition is None:
            kind = flat(ast.Constant(type(argument.value).__name__))
            condition = f"type({_NAME}).__name__ != {kind}"
            explained.append(
                (name, f"is built in: the program is valid for {_shown(argument.value)} only")
            )
        if argument.defaulted:
            condition = f"({_NAME} is not ... and {condition})"
        modules = frozenset() if expected is None else frozenset(modules_in(expected))
        shown = repr(argument.value)
        if expected is not None:
            shown = flat(expected)
        elif not _tells_all(argument.value, shown):
            shown = _shown(argument.value)
        apart.append(_Check(name, condition, shown, modules))
    return [*_statements(apart, fresh)], explained


def _statements(apart: Sequence[_Check], fresh: Callable[[str], str]) -> Iterator[Raw]:
    """Yield a loop for the elements of each list that have the same checks, then the others."""
    loops = _loops(apart)
    looped = set(map(id, itertools.chain.from_iterable(members for members, _ in loops)))
    by_list = itertools.groupby(loops, lambda loop: (len(loop[0]), loop[1].partition(_NAME)[0]))
    index = fresh("i") if loops else ""
    for (count, _), inside in by_list:
        rows, modules = [f"for {index} in range({count}):"], frozenset[str]()
        for members, name in inside:
            element = replace(members[0], name=name.replace(_NAME, index))
            own, named = _joined([element], index)
            rows, modules = [*rows, *(STEP + row for row in own)], modules | named
        yield Raw(rows, modules)
    together: list[_Check] = []
    for check in apart:
        if id(check) not in looped:
            if together and not _fits([*together, check]):
                yield Raw(*_joined(together))
                together = []
            together.append(check)
    if together:
        yield Raw(*_joined(together))


def _loops(apart: Sequence[_Check]) -> list[tuple[list[_Check], str]]:
    """Return checks that all elements of a list have alike, with the name of an element."""
    alike: dict[tuple[str, str, str], list[_Check]] = defaultdict(list)
    for check in apart:
        for match in _INDEX.finditer(check.name):
            name = f"{check.name[: match.start(1)]}{_NAME}{check.name[match.end(1) :]}"
            alike[name, check.condition, check.shown].append(check)
    loops: list[tuple[list[_Check], str]] = []
    found = set[int]()
    for (name, *_), members in sorted(alike.items(), key=lambda item: -len(item[1])):
        elements = [name.replace(_NAME, str(index)) for index in range(len(members))]
        is_whole = [check.name for check in members] == elements
        if len(members) >= _LEAST_LOOPED and is_whole and found.isdisjoint(map(id, members)):
            found.update(map(id, members))
            loops.append((members, name))
    return loops


def _fits(together: Sequence[_Check]) -> bool:
    """Return whether one statement can have several checks, each of its parts on a line."""
    rows, _ = _joined(together)
    return len(rows) == 2 and len(STEP + rows[0]) <= WIDTH


def _joined(together: Sequence[_Check], index: str = "") -> tuple[list[str], frozenset[str]]:
    """Return the lines of a statement with these checks, and the modules that it names.

    Args:
        together: the checks.
        index: the name of an index in the names, if there is one.
    """
    test = " or ".join(check.test for check in together)
    if len(together) == 1 and test.startswith("("):
        test = test[1:-1]
    text = f"written for {', '.join(check.told for check in together)}"
    message: ast.expr = ast.Constant(text)
    if index:
        literal = text.replace("{", "{{").replace("}", "}}").replace(f"[{index}]", f"[{{{index}}}]")
        message = parsed(f"f{flat(ast.Constant(literal))}")
    indent = STEP * (3 if index else 2)
    rows = broken(call("ValueError", message), indent, "raise ", "")
    modules = frozenset[str]().union(*(check.modules for check in together))
    return [f"if {test}:", *(f"{STEP}{row[len(indent) :]}" for row in rows)], modules


def _condition(value: object, expected: ast.expr | None) -> str | None:
    """Return a condition that is true for other values, or None if no expression can tell."""
    if isinstance(value, float) and math.isnan(value):
        return f"not np.isnan({_NAME})"
    if expected is not None:
        identical = isinstance(value, _IDENTICAL) or callable(value)
        return f"{_NAME} {'is not' if identical else '!='} {flat(expected)}"
    shown = repr(value)
    if _tells_all(value, shown):
        return f"repr({_NAME}) != {flat(ast.Constant(shown))}"
    return None


def _is_common(value: object) -> bool:
    """Return whether a value and its items have types of Python, NumPy or JAX.

    The expressions of others would import more.
    """
    match value:
        case tuple() | list() | set() | frozenset():
            return type(value).__module__ == "builtins" and all(map(_is_common, value))
        case dict():
            return type(value) is dict and all(map(_is_common, [*value, *value.values()]))
        case np.ndarray() | jax.Array():
            return False  # `!=` compares them element by element
        case _:
            named = value if callable(value) and hasattr(value, "__module__") else type(value)
            return str(named.__module__).partition(".")[0] in (
                "builtins",
                "jax",
                "numpy",
                "ml_dtypes",
            )


def _tells_all(value: object, shown: str) -> bool:
    """Return whether equal texts probably mean equal values: without addresses or ellipses."""
    own = getattr(type(value), "__repr__", None) != object.__repr__
    return own and len(shown) <= _LONGEST and not re.search(r" at 0x|\.\.\.|\n", shown)


def _shown(value: object) -> str:
    """Return a short name of a value for people."""
    name = getattr(value, "__qualname__", None)
    module = getattr(value, "__module__", None)
    if isinstance(name, str) and isinstance(module, str):
        return f"{module}.{name}"
    return f"the {type(value).__name__} that it was written for"
