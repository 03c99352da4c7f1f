"""Writes the step that raised the error."""

from __future__ import annotations

from typing import Protocol

from jaxsight_repro.capturing.call_tree.records import (
    Arguments,
    Bind,
    FailedStep,
    JaxCall,
    Operand,
    PlainValue,
)
from jaxsight_repro.emit import raising
from jaxsight_repro.emit.call_tree.structures import StandIns, path_of
from jaxsight_source.text.exprs import Attribute, Binary, Expr, Index, Item, call
from jaxsight_source.text.layout import flat
from jaxsight_source.text.statements import Assign, Effect, Raw, Return, Statement
from jaxsight_source.values import public_names
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.scope import Scope


class Operands(Protocol):
    """Writes the operands of calls."""

    stand_ins: StandIns

    def arguments(
        self, scope: Scope, arguments: Arguments, caller: JaxCall | None
    ) -> list[Item]: ...
    def leaf(self, scope: Scope, leaf: Operand, caller: JaxCall | None) -> Expr: ...


def step(functions: Operands, scope: Scope, failing: FailedStep) -> Statement:
    """Return the statement that raises the error."""
    items = functions.arguments(scope, failing.arguments, None)
    match failing.kind, items:
        case "function", _:
            return Effect(call(path_of(failing.path), *items))
        case "method", [own, *rest]:
            return Effect(call(Attribute(_expr(own), failing.path), *rest))
        case "operator", [left, right]:
            return Effect(Binary(failing.path, _expr(left), _expr(right)))
        case "index", [own, key]:
            return Effect(Index(_expr(own), (_expr(key),)))
        case "set", [own, key, new]:
            return Assign(flat(Index(_expr(own), (_expr(key),))), _expr(new))
        case "attribute", [own, _]:
            name = failing.arguments.args[1].leaves[0]
            assert isinstance(name, PlainValue)
            return Effect(Attribute(_expr(own), str(name.value)))
        case _:
            assert failing.raised is not None
            functions.stand_ins.exception(failing.raised)
            return Raw([f"raise {raising.expression(failing.raised)}"])


def return_last(body: list[Statement]) -> None:
    """Return the value of a function's last statement, so that its execution is waited for."""
    match body:
        case [*_, Effect(value, equations)]:
            body[-1] = Return(value, equations)


def bind(functions: Operands, scope: Scope, failing: Bind) -> Expr:
    """Return the expression that binds a primitive whose rule raised the error."""
    operands = [functions.leaf(scope, operand, None) for operand in failing.inputs]
    params = {name: value(param) for name, param in failing.params.items()}
    return call(public_names.primitive(failing.primitive).dot("bind"), *operands, **params)


def _expr(item: Item) -> Expr:
    return item  # type: ignore[return-value]
