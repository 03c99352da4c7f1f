"""What the user's code claims about an array where it raises: an `assert`, or an `if` that raises.

The exception itself is outside of JAX; the execution that made the array is what a repro is of.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from jaxsight_repro.capturing.raised import Raised, raised_of

if TYPE_CHECKING:  # JAX is not imported before the program imports it
    from jaxsight_repro.capturing.recorder import Made

_SIMPLE = (bool, int, float, complex, str)

_MODULES = {"jax": "jax", "jax.numpy": "jnp", "numpy": "np", "math": "math"}
"""Modules that a claim may name: a repro has them, or imports them."""

MakerOf: TypeAlias = Callable[[object], "Made | None"]
"""Returns the execution that made an array, if it is known."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A condition on a result of an execution, and what is raised if it does not hold.

    Attributes:
        array: the expression of the result in the condition.
        position: which of the leaves of the execution's results it is.
        test: the condition under which `raised` is raised.
        constants: the texts of other values that it names.
        imports: the modules that it names, with their names there.
    """

    array: str
    position: int
    test: str
    raised: Raised
    constants: tuple[tuple[str, str], ...] = ()
    imports: tuple[tuple[str, str], ...] = ()


def claim_of(error: BaseException, maker_of: MakerOf) -> tuple[Claim, Made] | None:
    """Return what the user's code claimed where it raised an error, and what made the array."""
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    test = None if tb is None else _test(tb)
    if tb is None or test is None:
        return None
    for array in ast.walk(test):  # the largest expressions first
        if not isinstance(array, ast.Name | ast.Attribute | ast.Subscript):
            continue
        value = _value(array, tb.tb_frame)
        made = None if value is None else maker_of(value)
        if made is None:
            continue
        known = _named(test, array, tb.tb_frame)
        if known is not None:
            constants, imports = known
            text, name = ast.unparse(test), ast.unparse(array)
            return Claim(name, made.position, text, raised_of(error), constants, imports), made
    return None


def _test(tb: TracebackType) -> ast.expr | None:
    """Return the condition under which the line of a traceback raises."""
    file = tb.tb_frame.f_code.co_filename
    try:
        tree = ast.parse("".join(linecache.getlines(file, tb.tb_frame.f_globals)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: ast.expr | None = None
    for node in ast.walk(tree):  # outer statements come before inner ones
        if not isinstance(node, ast.Assert | ast.If):
            continue
        if not node.lineno <= tb.tb_lineno <= (node.end_lineno or node.lineno):
            continue
        if isinstance(node, ast.Assert):
            match node.test:
                case ast.UnaryOp(op=ast.Not(), operand=denied):
                    found = denied
                case claimed:
                    found = ast.UnaryOp(ast.Not(), claimed)
        elif any(_raises(statement, tb.tb_lineno) for statement in node.body):
            found = node.test
    return found


def _raises(statement: ast.stmt, line: int) -> bool:
    is_there = statement.lineno <= line <= (statement.end_lineno or line)
    return isinstance(statement, ast.Raise) and is_there


def _value(expression: ast.expr, frame: FrameType) -> object:
    """Return the value of a name, or of attributes and constant items of one; None if unknown.

    No code of the user's runs: attributes are those that objects store.
    """
    match expression:
        case ast.Name(id=name):
            return frame.f_locals.get(name, frame.f_globals.get(name))
        case ast.Attribute(value=inner, attr=name):
            return getattr(_value(inner, frame), "__dict__", {}).get(name)
        case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
            held: Any = _value(inner, frame)
            if type(held) is dict or (type(held) in (list, tuple) and isinstance(key, int)):
                try:
                    return held[key]
                except LookupError:
                    return None
    return None


def _named(
    test: ast.expr, array: ast.expr, frame: FrameType
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] | None:
    """Return the constants and the modules that a condition names besides the array.

    None if it names anything else, which a repro has not.
    """
    constants: dict[str, str] = {}
    imports: dict[str, str] = {}
    pending: list[ast.AST] = [test]
    while pending:
        node = pending.pop()
        if node is array or ast.dump(node) == ast.dump(array):
            continue
        pending += ast.iter_child_nodes(node)
        if not isinstance(node, ast.Name):
            continue
        value = _value(node, frame)
        if type(value) in _SIMPLE:
            constants[node.id] = repr(value)
        elif (module := getattr(value, "__name__", None)) in _MODULES:
            imports[str(module)] = node.id
        elif value is not None or not hasattr(builtins, node.id):
            return None
    return tuple(constants.items()), tuple(imports.items())


RESULT = "claimed"


def lines_of(claim: Claim) -> tuple[str, ...]:
    """Return the condition and what it raises, on the result named `RESULT`."""

    class Renamed(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if isinstance(node, ast.expr) and ast.unparse(node) == claim.array:
                return ast.Name(RESULT, ast.Load())
            return self.generic_visit(node)

    test = ast.unparse(Renamed().visit(ast.parse(claim.test, mode="eval")))
    imports = [
        f"import {module} as {name}" if module != name else f"import {module}"
        for module, name in claim.imports
        if _MODULES[module] != name or module == "math"
    ]
    constants = [f"{name} = {text}" for name, text in claim.constants]
    return (*imports, *constants, f"if {test}:")
