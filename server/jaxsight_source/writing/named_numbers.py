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
from jaxsight_source.text.exprs import Atom, Binary, Call, Expr, Unary, call, mapped
from jaxsight_source.text.layout import flat
from jaxsight_source.values import scalars

_FRAMES = 2
"""The number of the user's frames whose lines are read: that of the operation, and its caller's, if
it is a function of a library."""

_EXACT = ("float32", "float64")
"""The dtypes whose numbers get names. Others have few digits, which may be meant as such."""

_LIMITS = ("max", "min", "eps", "tiny")

Define = Callable[[str, float], Expr]
"""Returns the name of a number of the user's in the module."""


def with_names(expr: Expr, group: Sequence[Equation], define: Define) -> Expr:
    """Return the expression of equations, with names for their literals that have some."""
    names: dict[str, Expr] = {}
    for equation in group:
        for atom in filter(is_literal, equation.invars):
            value: Any = np.asarray(atom.val, atom.aval.dtype)
            if value.ndim or value.dtype.name not in _EXACT or not np.isfinite(value):
                continue
            named = _named(value, equation, define)
            if named is None and isinstance(positive := _named(-value, equation, define), Atom):
                named = Unary("-", positive)
            if named is not None:
                names[flat(scalars.plain(value))] = named
    return _renamed(expr, names) if names else expr


def _renamed(expr: Any, names: dict[str, Expr]) -> Any:
    match expr:
        case Atom(text):
            return names.get(text, expr)
        case Call(Atom(function), (Atom(text),)) if (
            text in names and function.startswith(("np.", "jnp.")) and _is_limit(names[text])
        ):
            return names[text]  # it has the dtype itself
        case _:
            return mapped(expr, lambda part: _renamed(part, names))


def _is_limit(expr: Expr) -> bool:
    return flat(expr).startswith("jnp.finfo(")


def _named(value: Any, equation: Equation, define: Define) -> Expr | None:
    for name, number in _of_user(equation):
        if np.asarray(number, value.dtype).tobytes() == value.tobytes():
            return define(name, number)
    return _known(value.dtype.name).get(value.tobytes())


@functools.cache
def _known(dtype: str) -> dict[bytes, Expr]:
    """Return names of numbers by their bits in a dtype."""
    limits = np.finfo(dtype)
    of = call("jnp.finfo", scalars.dtype(np.dtype(dtype)))
    pi = Atom("jnp.pi")
    named: list[tuple[Any, Expr]] = [
        (math.pi, pi),
        (2 * math.pi, Binary("*", Atom("2"), pi)),
        (math.pi / 2, Binary("/", pi, Atom("2"))),
        (math.e, Atom("jnp.e")),
        *(
            (getattr(limits, name), Atom(f"{flat(of)}.{name}"))
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
