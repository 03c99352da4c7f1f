"""JX456: a compiled function draws with a key that it makes itself: the same numbers in every call.

Found in the text of the module, where what is drawn meets an argument element by element, as a mask
of dropout or noise does. Initial weights and probes (`A @ v`) are drawn once on purpose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.rule import ModuleViolation, NodeViolation, Rule
from jaxsight.rules.text.functions import Event, looked_for
from jaxsight.rules.text.jitted import is_bound_once
from jaxsight.rules.text.scopes import NameScope, Sources
from jaxsight.rules.text.statements import Statement, written
from jaxsight.rules.text.traced import traced_events
from jaxsight.rules.wording import quoted
from jaxsight.text.names import bound_in

RULE = Rule(
    __name__,
    "Compiled function draws the same numbers in every call.",
    severity="warning",
    word="random",
)

_MAKES = frozenset({"jax.random.key", "jax.random.PRNGKey"})
_DERIVES = frozenset({"jax.random.split", "jax.random.fold_in", "jax.random.clone"})
_DRAWS = re.compile(
    r"jax\.random\.(normal|uniform|bernoulli|rademacher|laplace|gumbel|exponential|"
    r"truncated_normal|randint|cauchy|logistic)"
)
_OF_VALUES = re.compile(r"jax\.random\.(bernoulli|categorical|poisson|binomial|gamma|beta)")
"""What draws from distributions that its arguments describe."""
_ONCE = re.compile(r"(.*[._<>])?(init|test|make|create|build|fake|dummy|synth|example|bench)\w*")
"""Names of functions whose numbers are meant to be the same."""
_DEEPEST = 4
"""Names that a key is followed through: a choice."""


@dataclass(frozen=True, slots=True)
class ConstantDraw:
    """A draw with a key that is a constant."""

    text: str


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield draws of functions that `jit` compiles, each once."""
    seen: set[tuple[int, int, int]] = set()
    for function, event, module in traced_events(statements):
        draw, at = event.data, (function.statement, event.at.lineno, event.at.col_offset)
        if not isinstance(draw, ConstantDraw) or not function.compiled or at in seen:
            continue
        if _ONCE.fullmatch(function.function.name) or not module.is_live(event.sources):
            continue
        seen.add(at)
        violation = NodeViolation(
            event.at,
            f"{quoted(draw.text, most=40)} is the same in every call: its key is a constant",
            help=f"pass the key to {function.named('the lambda')} as an argument, and split it "
            "before each call",
            notes=(function.note("the lambda"),),
        )
        yield ModuleViolation(function.statement, violation)


@looked_for
def look(scope: NameScope, node: ast.AST) -> Iterator[Event]:
    """Yield draws that meet arguments of functions."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            operands = [left, right]
        case ast.Call(func=function, args=operands) if scope.full(function) == "jax.numpy.where":
            pass
        case ast.Call(func=function, args=[key, *others]):
            full = scope.full(function)
            sources = _arguments(scope, others)
            if _OF_VALUES.fullmatch(full) and sources and _is_constant(scope, key, _DEEPEST):
                yield Event(node, sources, ConstantDraw(written(node)))
            return
        case _:
            return
    drawn = [draw for operand in operands if (draw := _drawn(scope, operand)) is not None]
    sources = _arguments(scope, operands)
    if sources:
        yield from (Event(draw, sources, ConstantDraw(written(draw))) for draw in drawn)


def _arguments(scope: NameScope, nodes: Sequence[ast.expr]) -> Sources:
    """Return the parameters that expressions are made from."""
    return frozenset(source for node in nodes for source in scope.sources(node) if source[1])


def _drawn(scope: NameScope, node: ast.expr, most: int = _DEEPEST) -> ast.Call | None:
    """Return the draw with a constant key that an expression is, or is computed of."""
    match node:
        case ast.Name(id=name) if most and name not in scope.parameters:
            value = scope.aliases.get(name) if is_bound_once(scope, name) else None
            return _drawn(scope, value, most - 1) if value is not None else None
        case ast.BinOp(left=left, right=right):
            return _drawn(scope, left, most) or _drawn(scope, right, most)
        case ast.UnaryOp(operand=operand):
            return _drawn(scope, operand, most)
        case ast.Call(func=ast.Attribute(value=value, attr="astype")):
            return _drawn(scope, value, most)
        case ast.Call(func=function, args=[key, *_]) if _DRAWS.fullmatch(scope.full(function)):
            return node if _is_constant(scope, key, _DEEPEST) else None
        case _:
            return None


def _is_constant(scope: NameScope, key: ast.expr, most: int) -> bool:
    """Whether a key is made of constants alone."""
    match key:
        case ast.Name(id=name) if most:
            holder = scope.holder(name)
            values = [
                node.value
                for node, _ in holder.nodes
                if isinstance(node, ast.Assign) and name in bound_in(*node.targets)
            ]
            is_once = len(values) == 1 and name not in holder.parameters
            is_once = is_once and is_bound_once(holder, name)
            return is_once and _is_constant(holder, values[0], most - 1)
        case ast.Subscript(value=value, slice=ast.Constant()):
            return _is_constant(scope, value, most)
        case ast.Call(func=function, args=[first, *others]):
            full = scope.full(function)
            if not all(isinstance(other, ast.Constant) for other in others):
                return False
            if full in _MAKES:
                return isinstance(first, ast.Constant)
            return full in _DERIVES and _is_constant(scope, first, most)
        case _:
            return False
