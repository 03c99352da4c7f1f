"""Names of numbers: `jnp.pi`, `jnp.e` and limits of dtypes.

A name stands for a number only if it has the same bits in the dtype of the equation's operand.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import is_literal
from jaxsight_source.text.exprs import binary, call, dotted, is_atom, mapped, parsed, public, unary
from jaxsight_source.text.layout import flat
from jaxsight_source.values import spelling

_EXACT = ("float32", "float64")
"""The dtypes whose numbers get names. Others have few digits, which may be meant as such."""


def with_names(expr: ast.expr, group: Sequence[Equation]) -> ast.expr:
    """Return the expression of equations, with names for their literals that have some."""
    names: dict[str, ast.expr] = {}
    for equation in group:
        for atom in filter(is_literal, equation.invars):
            value: Any = np.asarray(atom.val, atom.aval.dtype)
            if value.ndim or value.dtype.name not in _EXACT or not np.isfinite(value):
                continue
            known = _known(value.dtype.name)
            named = known.get(value.tobytes())
            if named is None:
                positive = known.get((-value).tobytes())
                if positive is not None and is_atom(positive):
                    named = unary("-", positive)
            if named is not None:
                names[flat(spelling.plain(value))] = named
    return _renamed(expr, names) if names else expr


def _renamed(expr: Any, names: dict[str, ast.expr]) -> Any:
    match expr:
        case _ if is_atom(expr):
            return names.get(flat(expr), expr)
        case ast.Call(function, [only], []) if (
            is_atom(only)
            and dotted(function).startswith(("np.", "jnp."))
            and (named := names.get(flat(only))) is not None
            and flat(named).startswith("jnp.finfo(")
        ):
            return named  # it has the dtype itself
        case _:
            return mapped(expr, lambda part: _renamed(part, names))


@functools.cache
def _known(dtype: str) -> dict[bytes, ast.expr]:
    """Return names of numbers by their bits in a dtype."""
    limits = np.finfo(dtype)
    of = call("jnp.finfo", spelling.dtype(np.dtype(dtype)))
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
