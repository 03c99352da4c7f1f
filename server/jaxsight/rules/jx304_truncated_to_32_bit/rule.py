"""JX304: a 64-bit type was requested, and JAX used the 32-bit one, or a number does not fit."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.program.rounding import rounded
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.walks import literal
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import FunctionNode, parsed
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted
from jaxsight.source.text import Edit
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
        number = literal(view.flow, operand)
        if value.origin != LITERAL or number is None or not value.dtype.startswith(("float", "bf")):
            continue
        held = rounded(number, value.dtype)
        if held != 0 and (not math.isinf(held) or step.primitive in _KEEPS_INFINITY):
            continue
        text = view.quote(step.path).strip()
        for node in _operands(parsed(text)):
            written = _number(view, step, node)
            if written and math.isfinite(written) and rounded(written, value.dtype) == held:
                shown = ast.get_source_segment(text, node) or ast.unparse(node)
                yield shown, value.dtype, held
                break


def _operands(node: ast.AST | None) -> Iterator[ast.expr]:
    """Yield what an expression is written of: operands of an operator, arguments of a call."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.AugAssign(value=value):
            yield value
        case ast.Compare(left=left, comparators=others):
            yield from (left, *others)
        case ast.Call(args=args, keywords=keywords):
            yield from (*args, *(keyword.value for keyword in keywords))


def _number(view: ProgramView, step: Step, node: ast.expr, depth: int = 4) -> float | None:
    """Return the number that an expression of constants is, in the function of an equation."""
    match node:
        case ast.Constant(value=float() | int() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _number(view, step, operand, depth)
            return -negated if negated is not None else None
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATORS:
            numbers = [_number(view, step, part, depth) for part in (left, right)]
            if numbers[0] is None or numbers[1] is None:
                return None
            try:
                return _OPERATORS[type(operation)](numbers[0], numbers[1])
            except (ArithmeticError, ValueError):
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
    stored = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    if stored:
        values = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and node.targets == stored
        ]
        return values[0] if values else None
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(zip([a.arg for a in positional][::-1], arguments.defaults[::-1], strict=False))
    defaults |= {
        argument.arg: default
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }
    if name in {argument.arg for argument in (*positional, *arguments.kwonlyargs)}:
        return defaults.get(name)
    return view.assigned(name)


RULE = Rule(
    "JX304",
    "truncated-to-32-bit",
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


@dataclass(frozen=True, slots=True)
class Truncated:
    """The dtypes of a truncated request."""

    requested: str
    """`float64`."""
    used: str
    """`float32`."""


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
                data=Truncated(requested, used),
                span=warned.span,
            )
    reported: set[object] = set()
    for step in view.flow.forward_steps():
        for text, dtype, held in lost(view, step):
            if (step.span, text) not in reported:
                reported.add((step.span, text))
                least, most = _LIMITS[dtype]
                near = "tiny" if held == 0 else "max" if held > 0 else "min"
                is_scale = held == 0 and step.primitive in ("mul", "div")
                yield Violation(
                    f"{quoted(text)} is {held:g} in {dtype}",
                    step.path,
                    help="change the units so that the numbers fit, or use a wider type"
                    if is_scale
                    else f"use a number that {dtype} has, as `jnp.finfo(jnp.{dtype}).{near}`, "
                    "or a wider type",
                    notes=(
                        f"{dtype} has no positive number below {least}"
                        if held == 0
                        else f"{dtype} has no finite number above {most}",
                    ),
                )


# The fix: write the 32-bit type that JAX uses in place of the 64-bit one.


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the expression with the 32-bit type wherever the 64-bit one is named."""
    types = context.finding.data
    if not isinstance(types, Truncated):
        return
    edits: list[Edit] = []
    for node in context.find(ast.expr):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name == types.requested:
                text = context.text(node)
                edits.append(context.replace(node, text.removesuffix(name) + types.used))
            case ast.Constant(value=str(name)) if name == types.requested:
                edits.append(context.replace(node, context.text(node).replace(name, types.used)))
    if edits:
        yield Candidate(f"Use `{types.used}`", tuple(edits))


REMEDY = Remedy(
    "the 32-bit type",
    candidates,
)
