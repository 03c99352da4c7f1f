"""Writes the step that raised the error."""

from __future__ import annotations

import ast
from typing import Protocol

from jaxsight_repro.capturing.call_tree import records
from jaxsight_repro.emit.call_tree.structures import StandIns, expression, path_of
from jaxsight_source.text.exprs import Item, binary, call, subscript
from jaxsight_source.text.statements import Raw, assign, effect, equations_of, return_
from jaxsight_source.values import public_names
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.scope import Scope


class Operands(Protocol):
    """Writes the operands of calls."""

    stand_ins: StandIns

    def arguments(
        self, scope: Scope, arguments: records.Arguments, caller: records.JaxCall | None
    ) -> list[Item]: ...
    def leaf(
        self, scope: Scope, leaf: records.Operand, caller: records.JaxCall | None
    ) -> ast.expr: ...


def step(functions: Operands, scope: Scope, failing: records.FailedStep) -> ast.stmt:
    """Return the statement that raises the error."""
    items = functions.arguments(scope, failing.arguments, None)
    match failing.kind, items:
        case "function", _:
            return effect(call(path_of(failing.path), *items))
        case "method", [own, *rest]:
            return effect(call(ast.Attribute(_expr(own), failing.path), *rest))
        case "operator", [left, right]:
            return effect(binary(failing.path, _expr(left), _expr(right)))
        case "index", [own, key]:
            return effect(subscript(_expr(own), _expr(key)))
        case "set", [own, key, new]:
            return assign(subscript(_expr(own), _expr(key)), _expr(new))
        case "attribute", [own, _]:
            name = failing.arguments.args[1].leaves[0]
            assert isinstance(name, records.PlainValue)
            return effect(ast.Attribute(_expr(own), str(name.value)))
        case _:
            assert failing.raised is not None
            functions.stand_ins.exception(failing.raised)
            return Raw([f"raise {expression(failing.raised)}"])


def return_last(body: list[ast.stmt]) -> None:
    """Return the value of a function's last statement, so that its execution is waited for."""
    match body:
        case [*_, ast.Expr(value) as last]:
            body[-1] = return_(value, equations_of(last))


def bind(functions: Operands, scope: Scope, failing: records.Bind) -> ast.expr:
    """Return the expression that binds a primitive whose rule raised the error."""
    operands = [functions.leaf(scope, operand, None) for operand in failing.inputs]
    params = {name: value(param) for name, param in failing.params.items()}
    return call(
        ast.Attribute(public_names.primitive(failing.primitive), "bind"), *operands, **params
    )


def _expr(item: Item) -> ast.expr:
    return item  # type: ignore[return-value]
