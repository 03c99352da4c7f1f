"""Names of numbers: `jnp.pi`, limits of dtypes, and the constants that the user's line names.

A name stands for a number only if it has the same bits in the dtype of the equation's operand.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.locations import places
from jaxsight_source.compat.staging import is_literal
from jaxsight_source.files.ours import OURS
from jaxsight_source.text.exprs import binary, call, dotted, is_atom, mapped, parsed, public, unary
from jaxsight_source.text.layout import flat
from jaxsight_source.values import scalars

_FRAMES = 2
"""The number of the user's frames whose lines are read: that of the operation, and its caller's, if
it is a function of a library."""

_EXACT = ("float32", "float64")
"""The dtypes whose numbers get names. Others have few digits, which may be meant as such."""

_LIMITS = ("max", "min", "eps", "tiny")

Define = Callable[[str, float], ast.expr]
"""Returns the name of a number of the user's in the module."""


def with_names(expr: ast.expr, group: Sequence[Equation], define: Define) -> ast.expr:
    """Return the expression of equations, with names for their literals that have some."""
    names: dict[str, ast.expr] = {}
    for equation in group:
        for atom in filter(is_literal, equation.invars):
            value: Any = np.asarray(atom.val, atom.aval.dtype)
            if value.ndim or value.dtype.name not in _EXACT or not np.isfinite(value):
                continue
            named = _named(value, equation, define)
            if named is None:
                positive = _named(-value, equation, define)
                if positive is not None and is_atom(positive):
                    named = unary("-", positive)
            if named is not None:
                names[flat(scalars.plain(value))] = named
    return _renamed(expr, names) if names else expr


def _renamed(expr: Any, names: dict[str, ast.expr]) -> Any:
    match expr:
        case _ if is_atom(expr):
            return names.get(flat(expr), expr)
        case ast.Call(function, [only], []) if (
            is_atom(only)
            and dotted(function).startswith(("np.", "jnp."))
            and (named := names.get(flat(only))) is not None
            and _is_limit(named)
        ):
            return named  # it has the dtype itself
        case _:
            return mapped(expr, lambda part: _renamed(part, names))


def _is_limit(expr: ast.expr) -> bool:
    return flat(expr).startswith("jnp.finfo(")


def _named(value: Any, equation: Equation, define: Define) -> ast.expr | None:
    for name, number in _of_user(equation):
        if np.asarray(number, value.dtype).tobytes() == value.tobytes():
            return define(name, number)
    return _known(value.dtype.name).get(value.tobytes())


@functools.cache
def _known(dtype: str) -> dict[bytes, ast.expr]:
    """Return names of numbers by their bits in a dtype."""
    limits = np.finfo(dtype)
    of = call("jnp.finfo", scalars.dtype(np.dtype(dtype)))
    pi = public("jnp.pi")
    named: list[tuple[Any, ast.expr]] = [
        (math.pi, pi),
        (2 * math.pi, binary("*", ast.Constant(2), pi)),
        (math.pi / 2, binary("/", pi, ast.Constant(2))),
        (math.e, public("jnp.e")),
        *(
            (getattr(limits, name), parsed(f"{flat(of)}.{name}"))
            for name in ("max", "min", "eps", "tiny")
        ),
    ]
    return {np.asarray(number).astype(dtype).tobytes(): expr for number, expr in named}


def _of_user(equation: Equation) -> Iterator[tuple[str, float]]:
    """Yield the numbers of the user's module that the lines of an equation name."""
    for file, (line, _, last, _) in itertools.islice(places(equation, _FRAMES), _FRAMES):
        if file.startswith(OURS):
            return
        lines = linecache.getlines(file)
        constants = _constants(file, len(lines))
        if constants:
            for word in re.findall(r"\b[A-Za-z]\w*", "".join(lines[line - 1 : last])):
                if word in constants:
                    yield word, constants[word]


@functools.lru_cache(maxsize=256)  # files
def _constants(path: str, size: int) -> dict[str, float]:
    """Return the floating-point numbers that a file assigns to names, once each.

    `size`, a number of lines, distinguishes an edited file from its previous version in the cache.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    assigned: dict[str, float] = {}
    counts: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
        elif isinstance(node, ast.arg):
            counts[node.arg] = counts.get(node.arg, 0) + 1
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(name)], value=value)
                | ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
            ):
                try:
                    number = ast.literal_eval(value)
                except ValueError:
                    continue
                if isinstance(number, float) and counts[name] == 1:
                    assigned[name] = number
            case _:
                pass
    return assigned
