"""Functions under transformations and `partial`s."""

from __future__ import annotations

import functools
import re
from types import FunctionType, MethodType
from typing import Any

from jaxsight.tracer.compat.eager_programs import Compiled

_WRAPPERS = 16
"""Transformations around a function that are opened; without a limit, a cycle never ends."""
_MAPS = re.compile(r"pmap|vmap|Pmap|shard_map|scan", re.IGNORECASE)
"""Names of transformations that pass parts of the arguments on."""


def compiled_as(wrapper: object, function: FunctionType) -> Compiled:
    """Return what a wrapped function is to the program that its wrapper compiles, if it does."""
    if "jit" not in type(wrapper).__name__.lower():
        return "eager"
    inner = getattr(wrapper, "__wrapped__", None)
    return "root" if inner is function or isinstance(inner, functools.partial) else "part"


def called_by(
    function: Any, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[FunctionType, tuple[object, ...], dict[str, object]] | None:
    """Return the function under transformations and `partial`s, and what it is called with.

    It is `None` if there is none, or if a transformation such as `vmap` passes parts of arguments.
    """
    for _ in range(_WRAPPERS):
        kind = type(function)
        if _MAPS.search(kind.__name__) or (
            kind is FunctionType and _MAPS.search(function.__code__.co_name)
        ):
            return None
        match function:
            case functools.partial():
                args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
                function = function.func
                continue
            case MethodType():
                args = (function.__self__, *args)
                function = function.__func__
                continue
            case _:
                pass
        inner = getattr(function, "__wrapped__", None)
        if not callable(inner):
            break
        function = inner
    return (function, args, kwargs) if isinstance(function, FunctionType) else None
