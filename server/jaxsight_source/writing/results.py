"""The results of equations: their order in an expression's value, targets, and base names."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, TypeGuard

from jaxsight_source.compat import hi_primitives
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import Program
from jaxsight_source.text.exprs import tuple_
from jaxsight_source.text.names import identifier, of_path, without_number


def with_parts(program: Program, **parts: object) -> Program:
    """Return a program with other `invars`, `eqns`, `outvars` … of its jaxpr."""
    jaxpr = program.jaxpr
    names = ("constvars", "invars", "eqns", "outvars", "debug_info")
    own = {name: getattr(jaxpr, name, None) for name in names}
    return Program(SimpleNamespace(**own | parts), program.consts)


def sequence(results: list[ast.expr]) -> ast.expr:
    """Return a single result, or a tuple."""
    return results[0] if len(results) == 1 else tuple_(results)


def nested_results(count: int) -> int | tuple[int, ...]:
    """Return the tree of `sequence`'s results."""
    return 0 if count == 1 else tuple(range(count))


def targets_pattern(results: Any, targets: Sequence[str]) -> ast.expr:
    """Return the left-hand side of an assignment."""
    if isinstance(results, int):
        return ast.Name(targets[results])
    if results is None:
        return ast.Name("_")
    return tuple_(targets_pattern(inner, targets) for inner in results)


def primitive_name(equation: Equation) -> str:
    """Return the name of the computation; for a high-level primitive, that of its class."""
    name = str(equation.primitive.name)
    return (
        hi_primitives.class_and_params(equation.params)[0].lower()
        if name == "call_hi_primitive"
        else name
    )


def after_function(equation: Equation) -> str | None:
    """Return a name for the result of a jitted call, after the function, or None."""
    name = equation.params.get("name") if equation.primitive.name in ("jit", "pjit") else None
    return identifier(str(name).strip("_"), "out") + "_out" if name else None


def argument_bases(program: Program, fallback: str | Sequence[str] = "x") -> list[str]:
    """Return base names for a program's inputs: the user's names, if JAX knows them.

    `fallback` is for the others: one name for each, or names for all.
    """
    info = getattr(program.jaxpr, "debug_info", None)
    names = getattr(info, "arg_names", None) if info is not None else None
    count = len(program.jaxpr.invars)
    fallbacks = [fallback] * count if isinstance(fallback, str) else list(fallback)
    if names is None or len(names) != count:
        return fallbacks
    pairs = zip(names, fallbacks, strict=True)
    return [of_path(str(name or ""), base) if name else base for name, base in pairs]


def passed_as(operands: Sequence[ast.expr]) -> list[str]:
    """Return base names for parameters without known names: those of the values passed."""
    return [without_number(expr.id) if _is_name(expr) else "x" for expr in operands]


def slices_of(operands: Sequence[ast.expr]) -> list[str]:
    """Return base names for slices of the values that a loop iterates over."""
    counted = {"iota": "i", "numbers": "i"}
    bases = [
        base if _is_name(expr) else ""
        for expr, base in zip(operands, passed_as(operands), strict=True)
    ]
    return [counted.get(base, f"{base}_i") if base else "x" for base in bases]


def _is_name(expr: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(expr, ast.Name) and not expr.id.startswith("_")
