"""Checks in the written function that the values built into the program are unchanged.

Arguments that are not arrays are built in. A value that can be written as an expression is compared
with it, and one with a complete `repr` by that. Of others only the type is compared, and the
written function's docstring explains it.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from jaxsight_source.calls.signature import Fixed
from jaxsight_source.errors import Unwritable
from jaxsight_source.text.exprs import call, modules_in
from jaxsight_source.text.layout import STEP, broken, flat
from jaxsight_source.text.statements import Raw
from jaxsight_source.values import scalars, spelling

_LONGEST = 120
"""The maximum length of a `repr` in a check, in characters: nobody reads longer ones."""

_IDENTICAL = (bool, type(None), enum.Enum)
"""Types whose values are compared with `is`."""


@dataclass(frozen=True, slots=True)
class Checks:
    """Statements that reject other values, and explanations of values that cannot be compared."""

    statements: tuple[ast.stmt, ...]
    explained: tuple[tuple[str, str], ...]


def checks(fixed: Sequence[Fixed]) -> Checks:
    """Return the checks of all fixed arguments."""
    statements: list[ast.stmt] = []
    explained: list[tuple[str, str]] = []
    for argument in fixed:
        name = flat(argument.expr)
        expected = None
        if _is_common(argument.value):
            with contextlib.suppress(Unwritable):
                expected = spelling.value(argument.value)
        test = _test(name, argument.value, expected)
        if test is None:
            test = f"type({name}).__name__ != {flat(scalars.text(type(argument.value).__name__))}"
            explained.append(
                (name, f"is built in: the program is valid for {_shown(argument.value)} only")
            )
        if argument.defaulted:
            test = f"{name} is not ... and {test}"
        modules = frozenset() if expected is None else frozenset(modules_in(expected))
        shown = repr(argument.value)
        if expected is not None:
            shown = flat(expected)
        elif not _tells_all(argument.value, shown):
            shown = _shown(argument.value)
        raised = call("ValueError", scalars.text(f"written for {name} = {shown}"))
        rows = [row[len(STEP) :] for row in broken(raised, STEP * 2, "raise ", "")]
        statements.append(Raw([f"if {test}:", *rows], modules))
    return Checks(tuple(statements), tuple(explained))


def _test(name: str, value: object, expected: ast.expr | None) -> str | None:
    """Return a condition that is true for other values, or None if no expression can tell."""
    if isinstance(value, float) and math.isnan(value):
        return f"not np.isnan({name})"
    if expected is not None:
        identical = isinstance(value, _IDENTICAL) or callable(value)
        return f"{name} {'is not' if identical else '!='} {flat(expected)}"
    shown = repr(value)
    if _tells_all(value, shown):
        return f"repr({name}) != {flat(scalars.text(shown))}"
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
