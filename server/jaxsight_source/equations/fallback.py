"""Spellings for any primitive: the public function of its name, and `bind` as a last resort."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Iterator

from jaxsight_source.compat.jaxpr_types import Params
from jaxsight_source.equations.registry import View
from jaxsight_source.text.exprs import SHORT, TRUE, Item, call, is_identifier
from jaxsight_source.values import public_names, spelling

_HOMES = {"lax": "jax.lax", "lax.linalg": "jax.lax.linalg", "jax": "jax"} | {
    SHORT[module]: module for module in SHORT if ".pallas" in module
}
"""The modules with functions named like primitives, those of Pallas if they are imported."""


def given(params: Params, *names: str) -> dict[str, ast.expr]:
    """Return those of the named parameters that are not None, as keyword arguments."""
    return {name: spelling.value(params[name]) for name in names if params.get(name) is not None}


def flags(params: Params, *names: str) -> dict[str, ast.expr]:
    """Return `name=True` for those of the named parameters that are true."""
    return {name: TRUE for name in names if params.get(name)}


@functools.cache
def public_function(name: str) -> tuple[str, inspect.Signature] | None:
    for path, module in _HOMES.items():
        function = getattr(sys.modules.get(module), name.replace("-", "_"), None)
        if callable(function) and not isinstance(function, type):
            try:
                return f"{path}.{name.replace('-', '_')}", inspect.signature(function)
            except (TypeError, ValueError):
                return None
    return None


def by_name(view: View) -> Iterator[ast.expr]:
    """Yield a call such as `lax.cumsum(x, axis=0)`.

    Operands are passed for the parameters for which the equation has no value.
    """
    public = public_function(view.name)
    if public is None:
        return
    path, signature = public
    for explicit in (False, True):
        candidate = _called(path, signature, view, explicit)
        if candidate is not None:
            yield candidate


def _called(path: str, signature: inspect.Signature, view: View, explicit: bool) -> ast.expr | None:
    waiting = list(view.operands)
    positional: list[Item] = []
    named: list[Item] = []
    for parameter in signature.parameters.values():
        if parameter.name in view.params:
            argument = view.params[parameter.name]
            if explicit or not is_default(argument, parameter.default):
                named.append(ast.keyword(parameter.name, spelling.value(argument)))
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            positional.extend(waiting)
            waiting = []
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        elif waiting and not named:
            positional.append(waiting.pop(0))
        elif waiting and parameter.default is inspect.Parameter.empty:
            named.append(ast.keyword(parameter.name, waiting.pop(0)))
        elif parameter.default is inspect.Parameter.empty:
            return None
    return None if waiting else call(path, *positional, *named)


def is_default(argument: object, default: object) -> bool:
    """Return whether an argument is the parameter's default, or equal to it and of its type."""
    if argument is default:
        return True
    try:
        return type(argument) is type(default) and bool(argument == default)
    except (TypeError, ValueError):
        return False


def by_package(view: View) -> Iterator[ast.expr]:
    """Yield the same for another package's primitive, as `equinox.internal.unvmap_any(x)`."""
    package = public_names.package_of(view.primitive)
    if package is None or not is_identifier(view.name):
        return
    for path in public_names.functions_called(view.name, package):
        named = {name: spelling.value(value) for name, value in view.params.items()}
        yield call(path, *view.operands)
        if named and all(map(is_identifier, named)):
            yield call(path, *view.operands, **named)


def by_primitive(view: View) -> Iterator[ast.expr]:
    """Yield a call such as `primitives.add_jaxvals_p.bind(x, y)`."""
    path = public_names.primitive(view.primitive)
    named = {name: spelling.value(value) for name, value in view.params.items()}
    if all(is_identifier(name) for name in named):
        yield call(ast.Attribute(path, "bind"), *view.operands, **named)
