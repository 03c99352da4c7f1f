"""The parameters of a function: which argument each gets, and its name for users."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from jaxsight.tracer.calls.user_function import UserFunction
from jaxsight.tracer.failures import UserError, failure, refusal

Returned = TypeVar("Returned")
_ITEM = re.compile(r"(?P<name>\w+)\[(?P<index>\d+)\]")


def named(
    user_function: UserFunction, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, object]:
    """Return the arguments by parameter, including defaults."""
    signature = _signature(user_function)
    if signature is None:
        return {str(index): value for index, value in enumerate(args)}
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UserError(failure(error, "inputs")) from error
    bound.apply_defaults()
    named: dict[str, object] = {}
    for name, value in bound.arguments.items():
        match signature.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                named |= {f"{name}[{index}]": part for index, part in enumerate(value)}
            case inspect.Parameter.VAR_KEYWORD:
                named |= value
            case _:
                named[name] = value
    return named


def parameter(user_function: UserFunction, position: int) -> str:
    """Return the name of the parameter at a position, for items of `*args` e.g. `args[1]`."""
    signature = _signature(user_function)
    parameters = signature.parameters.values() if signature is not None else ()
    for index, parameter_at in enumerate(parameters):
        if parameter_at.kind is inspect.Parameter.VAR_POSITIONAL:
            return f"{parameter_at.name}[{position - index}]"
        if index == position:
            return parameter_at.name
    return f"argument {position}"


def bound(
    function: str, user_function: UserFunction, values: dict[str, Any]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return a call with values by parameter: positional up to a gap, then by keyword."""
    signature = _signature(user_function)
    if signature is None:
        return tuple(values.values()), {}
    args: list[object] = []
    kwargs: dict[str, object] = {}
    unbound = dict(values)
    gap = False
    missing: list[str] = []
    var_keyword: inspect.Parameter | None = None
    for parameter in signature.parameters.values():
        name = parameter.name
        match parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                items = [match for match in map(_ITEM.fullmatch, unbound) if match is not None]
                own = [match for match in items if match["name"] == name]
                if name in unbound:
                    args += unbound.pop(name)
                own.sort(key=lambda match: (int(match["index"]), match[0]))
                args += [unbound.pop(match[0]) for match in own]
            case inspect.Parameter.VAR_KEYWORD:
                var_keyword = parameter
            case kind if name in unbound:
                if kind == inspect.Parameter.KEYWORD_ONLY or gap:
                    kwargs[name] = unbound.pop(name)
                else:
                    args.append(unbound.pop(name))
            case kind:
                gap = gap or kind != inspect.Parameter.KEYWORD_ONLY
                if parameter.default is inspect.Parameter.empty:
                    missing.append(name)
    if var_keyword is not None:
        kwargs |= unbound.pop(var_keyword.name, {})
        kwargs |= unbound
        unbound = {}
    if unbound:
        name = next(iter(unbound))
        raise refusal("inputs", f"{function} has no parameter {name}", argument=name)
    if missing:
        names = ", ".join(missing)
        raise refusal("inputs", f"no example input for {names}", argument=missing[0])
    return tuple(args), kwargs


def signed(
    call: Callable[..., Returned], own: Callable[..., object], *more: inspect.Parameter
) -> Callable[..., Returned]:
    """Give `call` the name and the parameters of `own`, and `more` of these."""
    functools.update_wrapper(call, own, updated=())
    # Set by `update_wrapper`: `inspect.unwrap` would skip what `call` adds.
    del call.__wrapped__  # type: ignore[attr-defined]
    return with_parameters(call, own, *more)


def with_parameters(
    call: Callable[..., Returned], own: Callable[..., object], *more: inspect.Parameter
) -> Callable[..., Returned]:
    """Give `call` the parameters of `own`, and `more`: first ones, or the last keywords."""
    with contextlib.suppress(TypeError, ValueError):  # not every callable has a signature
        signature = inspect.signature(own)
        every = [*more, *signature.parameters.values()]
        every.sort(key=lambda each: (each.kind, each.kind == each.KEYWORD_ONLY and each in more))
        call.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
    return call


def _signature(user_function: UserFunction) -> inspect.Signature | None:
    try:
        return inspect.signature(user_function.call)
    # Some builtins have no signature.
    except (TypeError, ValueError):
        return None
