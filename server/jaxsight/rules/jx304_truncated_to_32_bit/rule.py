"""JX304: a 64-bit type was requested, and JAX used the 32-bit one, or a number does not fit."""

# Longer than most rules: numbers are evaluated as they are written, through names, defaults and
# operators.

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.rounding import rounded
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import (
    FunctionNode,
    call_operands,
    only_value,
    operands_of,
    parsed,
    stores_of,
)
from jaxsight.rules.wording import quoted
from jaxsight.source.text import Edit
from jaxsight.text.names import with_defaults
from jaxsight.wire.program import LITERAL, Step

# Find the numbers that users write in expressions, and that a dtype does not have.

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
_KEEPS_INFINITY = frozenset({"select_n", "max", "min", "clamp", "convert_element_type"})
"""Primitives for which a number that is infinite does what the large one was meant for."""


def lost(view: ProgramView, step: Step) -> Iterator[tuple[str, str, float]]:
    """Yield the numbers that an equation does not get as the user writes them.

    Yield their text, the dtype, and what they are in it: 0 or infinite.
    """
    for operand in step.operands:
        value = view.flow.value(operand)
        number = view.flow.literal(operand)
        if value.origin != LITERAL or number is None or not value.dtype.startswith(("float", "bf")):
            continue
        held = rounded(number, value.dtype)
        if held != 0 and (not math.isinf(held) or step.primitive in _KEEPS_INFINITY):
            continue
        text = view.quote(step.path).strip()
        whole = parsed(text)
        for node in call_operands(whole) if isinstance(whole, ast.Call) else operands_of(whole):
            written = _number(view, step, node)
            if written and math.isfinite(written) and rounded(written, value.dtype) == held:
                shown = ast.get_source_segment(text, node) or ast.unparse(node)
                yield shown, value.dtype, held
                break


def _number(view: ProgramView, step: Step, node: ast.expr, depth: int = 4) -> float | None:
    """Return the number that an expression of constants is, in the function of an equation."""
    match node:
        case ast.Constant(value=float() | int() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _number(view, step, operand, depth)
            return -negated if negated is not None else None
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATORS:
            one, two = (_number(view, step, part, depth) for part in (left, right))
            with suppress(ArithmeticError, ValueError):
                if one is not None and two is not None:
                    return _OPERATORS[type(operation)](one, two)
            return None
        case ast.Name(id=name) if depth:
            value = _assigned(view, step, name)
            return _number(view, step, value, depth - 1) if value is not None else None
        case _:
            return None


def _assigned(view: ProgramView, step: Step, name: str) -> ast.expr | None:
    """Return the only value of a name: a local one, the default of a parameter, the module's."""
    function = next((n for n in view.around(step.path)[::-1] if isinstance(n, FunctionNode)), None)
    if function is None:
        return None
    if stores_of(name, function):
        return only_value(name, function)
    defaults = {argument.arg: default for argument, default in with_defaults(function.args)}
    return defaults[name] if name in defaults else view.assigned(name)


RULE = Rule(
    __name__,
    "64-bit type, or a number that the narrower type in use does not have.",
    severity="warning",
    without_inputs=True,
)

_TRUNCATED = re.compile(
    r"dtype (?P<requested>\w+)\b.*?truncated to (?:dtype )?(?P<used>\w+)",
    re.DOTALL,
)


_LIMITS = {
    "float16": ("6e-8", "65,504"),
    "bfloat16": ("9e-41", "3.4e38"),
    "float32": ("1.4e-45", "3.4e38"),
    "float64": ("4.9e-324", "1.8e308"),
}
"""The least positive and the greatest number of each type (`jnp.finfo`)."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield a finding for each warning of JAX that says so, and for each number that is lost."""
    for warned in view.warnings:
        match = _TRUNCATED.search(warned.message)
        if match is not None:
            requested, used = match["requested"], match["used"]
            yield Violation(
                f"requested `{requested}`, got `{used}`: 64-bit types are disabled",
                help=f"use `{used}`, or enable 64-bit types with "
                '`jax.config.update("jax_enable_x64", True)`',
                data=(requested, used),
                span=warned.span,
            )
    for step in view.flow.forward_steps():
        for text, dtype, held in lost(view, step):
            least, most = _LIMITS[dtype]
            near = "tiny" if held == 0 else "max" if held > 0 else "min"
            limits = f"jnp.finfo(jnp.{dtype})"
            help = f"use a number that {dtype} has, as `{limits}.{near}`, or a wider type"
            if held == 0 and step.primitive in ("mul", "div"):
                help = "change the units so that the numbers fit, or use a wider type"
            limit = f"positive number below {least}" if held == 0 else f"finite number above {most}"
            yield Violation(
                f"{quoted(text)} is {held:g} in {dtype}",
                step.path,
                help=help,
                notes=(f"{dtype} has no {limit}",),
            )


# The fix: write the 32-bit type that JAX uses in place of the 64-bit one.


@RULE.fixes("the 32-bit type")
def candidates(context: FixContext, types: tuple[str, str]) -> Iterator[Candidate]:
    """Yield the expression with the 32-bit type wherever the 64-bit one is named."""
    requested, used = types
    edits: list[Edit] = []
    for node in context.find(ast.expr):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name == requested:
                edits.append(context.replace(node, context.text(node).removesuffix(name) + used))
            case ast.Constant(value=str(name)) if name == requested:
                edits.append(context.replace(node, context.text(node).replace(name, used)))
    if edits:
        yield Candidate(f"Use `{used}`", tuple(edits))
