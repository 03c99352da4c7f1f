"""JX454: an exception of arithmetic is expected of JAX arrays, which give `inf` or `nan` instead.

Found in the text, where all that is computed in the `try` or the `with` are JAX arrays, and in
programs: there an equation stands for each operation and each call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import Place, dotted, place_of
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import NameScope, Sources
from jaxsight.rules.text.statements import Imports, Statement, imports_of, uses_jax, written
from jaxsight.rules.text.traced import traced_module
from jaxsight.rules.violation import ModuleViolation, NodeViolation, Violation
from jaxsight.rules.wording import quoted
from jaxsight.wire.spans import Span

RULE = Rule(
    "JX454",
    "dead-handler",
    "Handler waits for an exception that JAX arrays do not raise.",
    severity="warning",
)

_EXCEPTIONS = frozenset(
    {
        "ZeroDivisionError", "FloatingPointError", "OverflowError", "ArithmeticError",
        "RuntimeWarning",
        "numpy.linalg.LinAlgError", "numpy.linalg.linalg.LinAlgError", "scipy.linalg.LinAlgError",
    }
)  # fmt: skip
_NEVER_RAISED = frozenset({"ZeroDivisionError", "OverflowError", "LinAlgError"})
"""Those that JAX does not raise with `jax_debug_nans` either."""
_NAMED = re.compile("|".join({name.rpartition(".")[2] for name in _EXCEPTIONS} | {"errstate"}))
_COMPUTES = re.compile(r"jax\.(numpy|lax|nn|scipy|random)\.")
_KNOWN = frozenset({"astype", "reshape", "sum", "mean", "max", "min", "dot", "transpose", "ravel"})
"""Methods of arrays."""
_DEBUGS = ("debug_nans", "debug_infs")
"""Options with which JAX does raise `FloatingPointError`."""
_NODES = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.Tuple,
    ast.List, ast.Call, ast.Slice, ast.operator, ast.unaryop, ast.expr_context, ast.keyword,
    ast.Assign, ast.Return, ast.Expr, ast.AugAssign, ast.Starred,
)  # fmt: skip
"""What is understood: anything else may raise."""


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield handlers of arithmetic exceptions, and `np.errstate`, around JAX arrays alone."""
    texts = [statement.text for statement in statements]
    if any(option in text for text in texts for option in _DEBUGS):
        return
    suspects = [at for at, text in enumerate(texts) if _NAMED.search(text)]
    imports = imports_of(statements)
    if not suspects or not uses_jax(imports):
        return
    module = traced_module(statements)
    live = frozenset(
        (name, parameter)
        for name, function in module.functions.items()
        for parameter in function.traced
    )
    for number in suspects:
        for violation in statements[number].read(_violations, imports, live):
            yield ModuleViolation(number, violation)


def _violations(tree: ast.Module, imports: Imports, live: Sources) -> tuple[NodeViolation, ...]:
    return tuple(
        violation
        for scope in scopes_of(tree, dict(imports))
        for node, _ in scope.nodes
        for violation in _at(scope, node, live)
    )


def _at(scope: NameScope, node: ast.AST, live: Sources) -> Iterator[NodeViolation]:
    match node:
        case ast.Try(body=body, handlers=handlers):
            if not _is_of_jax(scope, body, live):
                return
            for handler in handlers:
                names = _caught(scope, handler.type)
                if handler.type is not None and names and names <= _EXCEPTIONS:
                    node = ast.copy_location(ast.Constant(None), handler.type)
                    message, help, note = _words(handler.type)
                    yield NodeViolation(node, message, help=help, notes=(note,))
        case ast.With(items=items, body=body):
            for item in items:
                call = item.context_expr
                if (
                    isinstance(call, ast.Call)
                    and scope.full(call.func) == "numpy.errstate"
                    and {"raise", "warn", "call"}
                    & {
                        word.value.value
                        for word in call.keywords
                        if isinstance(word.value, ast.Constant)
                    }
                    and _is_of_jax(scope, body, live)
                ):
                    yield NodeViolation(
                        ast.copy_location(ast.Constant(None), call),
                        "`np.errstate` has no effect on JAX arrays",
                        help="test the result, or look for NaN with `jax_debug_nans`",
                        notes=("division by zero gives `inf` or `nan`, without a warning",),
                    )


@RULE.finds_in_program
def find_in_program(view: ProgramView) -> Iterator[Violation]:
    """Yield handlers around what a function computes with its arrays."""
    spans = [step.span for step in view.flow.steps.values() if step.span is not None]
    computed = {(each.line, each.column, each.end_line, each.end_column) for each in spans}
    seen: set[ast.AST] = set()
    for span in dict.fromkeys(spans):
        nodes = view.syntax(span)
        for inside, node in pairwise(nodes):
            if not isinstance(node, ast.Try) or inside not in node.body or node in seen:
                continue
            seen.add(node)
            parts = [part for statement in node.body for part in ast.walk(statement)]
            if all(_may_not_raise(part, computed) for part in parts):
                for handler in node.handlers:
                    caught = handler.type
                    types = caught.elts if isinstance(caught, ast.Tuple) else [caught]
                    names = {dotted(each).rpartition(".")[2] for each in types if each is not None}
                    if caught is not None and names <= _NEVER_RAISED:
                        message, help, note = _words(caught)
                        place = Span(span.chunk, *place_of(caught))
                        yield Violation(message, span=place, help=help, notes=(note,))


def _may_not_raise(node: ast.AST, computed: Collection[Place]) -> bool:
    """Whether a part of a body computes with arrays, or computes nothing."""
    if isinstance(node, ast.BinOp | ast.Call):
        return place_of(node) in computed
    if isinstance(node, ast.AugAssign):
        return place_of(node) in computed or isinstance(node.value, ast.BinOp | ast.Call)
    return isinstance(node, _NODES)


def _words(caught: ast.expr) -> tuple[str, str, str]:
    """Return the message, the help and the note about a handler."""
    if "LinAlgError" in ast.unparse(caught):
        test, note = "`jnp.isnan(…).any()`", "a factorization that fails returns NaN"
    else:
        test = "`jnp.where(y == 0, …, x / y)`"
        note = "division by zero gives `inf` or `nan`, and integers wrap around"
    message = f"JAX arrays do not raise {quoted(written(caught), most=32)}: this handler never runs"
    return message, f"test the result: {test}", note


def _caught(scope: NameScope, node: ast.expr | None) -> set[str]:
    match node:
        case None:
            return set()
        case ast.Tuple(elts=parts):
            return {name for part in parts for name in _caught(scope, part)}
        case _:
            return {scope.full(node) or "?"}


def _is_of_jax(scope: NameScope, body: Sequence[ast.stmt], live: Sources) -> bool:
    """Whether a body computes with JAX arrays, and nothing that may raise otherwise."""
    computes = False
    for node in (inner for statement in body for inner in ast.walk(statement)):
        match node:
            case ast.BinOp(left=left, right=right):
                if not _is_array(scope, left, live) and not _is_array(scope, right, live):
                    return False
                computes = True
            case ast.AugAssign(target=target, value=value):
                if not _is_array(scope, target, live) and not _is_array(scope, value, live):
                    return False
                computes = True
            case ast.Call(func=function):
                is_method = isinstance(function, ast.Attribute) and (
                    function.attr in _KNOWN and _is_array(scope, function.value, live)
                )
                if not _COMPUTES.match(scope.full(function)) and not is_method:
                    return False
                computes = True
            case _ if not isinstance(node, _NODES):
                return False
    return computes


def _is_array(scope: NameScope, node: ast.expr, live: Sources) -> bool:
    """Whether an expression is certainly a JAX array: a tracer, or what a function of JAX made."""
    match node:
        case ast.BinOp(left=left, right=right):
            return _is_array(scope, left, live) or _is_array(scope, right, live)
        case ast.UnaryOp(operand=operand) | ast.Subscript(value=operand):
            return _is_array(scope, operand, live)
        case ast.Name(id=name):
            sources = scope.sources(node)
            if (scope.name, name) in sources:
                return (scope.name, name) in live
            value = scope.holder(name).aliases.get(name)
            return value is not None and isinstance(value, ast.Call) and _is_made(scope, value)
        case ast.Call():
            return _is_made(scope, node)
        case _:
            return False


def _is_made(scope: NameScope, call: ast.Call) -> bool:
    return _COMPUTES.match(scope.full(call.func)) is not None
