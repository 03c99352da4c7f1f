"""The user's functions, so that calls of them can be observed."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from jaxsight_repro.capturing.call_tree.packing import Values
from jaxsight_repro.capturing.call_tree.records import UserCall
from jaxsight_source.files.ours import OURS

_DEEPEST = 4
"""Functions that hold functions, one inside the other: decorators seldom have more."""


Called: TypeAlias = Callable[["Wrapped", tuple[object, ...], dict[str, object]], object]
"""Calls the function of a wrapper with arguments."""


class Wrapped:
    """A function of the user's, passed to JAX in its place.

    It is equal to other wrappers of the same function and has its hash, signature and attributes,
    so JAX's caches find what they would find without it.
    """

    def __init__(self, fun: Callable[..., object], called: Called) -> None:
        self.__wrapped__ = fun
        self.__doc__ = getattr(fun, "__doc__", None)
        self.__module__ = getattr(fun, "__module__", __name__)
        self._called = called
        self.history: list[tuple[UserCall, Values]] = []
        """The last calls of the function, each with the values of its tree."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._called(self, args, kwargs)

    def __getattr__(self, name: str) -> object:
        if name == "__wrapped__":
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Wrapped):
            return NotImplemented
        return self is other or bool(self.__wrapped__ == other.__wrapped__)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __reduce__(self) -> tuple[object, ...]:
        return (_same, (self.__wrapped__,))


def _same(fun: Callable[..., object]) -> Callable[..., object]:
    return fun


def wrapper_of(fun: Callable[..., object], called: Called) -> Wrapped:
    """Return the wrapper of a function: the same one as long as the function lives."""
    if isinstance(fun, Wrapped):
        return fun
    if not inspect.isfunction(fun) and not isinstance(fun, functools.partial):
        return Wrapped(fun, called)
    known = fun.__dict__.get("_jaxsight_wrapper")
    if isinstance(known, Wrapped) and known.__wrapped__ is fun:
        return known
    wrapper = Wrapped(fun, called)
    fun.__dict__["_jaxsight_wrapper"] = wrapper
    return wrapper


@functools.lru_cache(maxsize=4096)  # files of a program
def is_jax_file(file: str) -> bool:
    """Return whether a file belongs to JAX."""
    jax = sys.modules.get("jax")
    init = str(getattr(jax, "__file__", None) or "")
    return bool(init) and file.startswith(str(Path(init).parent) + os.sep)


def is_ours(file: str) -> bool:
    """Return whether a file belongs to the tracker."""
    return file.startswith(OURS)


def is_users(fun: object, depth: int = _DEEPEST) -> bool:
    """Return whether a function is not one of JAX's own, or holds one that is not."""
    if isinstance(fun, Wrapped):
        return True
    if isinstance(fun, functools.partial):
        inside = (fun.func, *fun.args, *fun.keywords.values())
        return any(is_users(part, depth - 1) for part in inside if callable(part))
    if inspect.ismethod(fun):
        fun = fun.__func__
    if getattr(fun, "_jaxsight_made_by", None) is not None:
        return True
    if getattr(fun, "__code__", None) is None:
        return _is_users_object(fun, depth)
    if _has_users_code(fun):
        return True
    return bool(depth) and any(is_users(held, depth - 1) for held in _held(fun))


def _has_users_code(fun: object) -> bool:
    """Return whether a function, or one that it wraps, is not JAX's."""
    for _ in range(_DEEPEST):
        code = getattr(fun, "__code__", None)
        if code is not None and not is_jax_file(code.co_filename):
            return True
        fun = getattr(fun, "__wrapped__", None)
        if fun is None:
            return False
        if isinstance(fun, Wrapped):
            return True
    return False


def _held(fun: object) -> Iterator[object]:
    """Yield the functions that a function captures."""
    for cell in getattr(fun, "__closure__", None) or ():
        with contextlib.suppress(ValueError):
            content = cell.cell_contents
            if callable(content) and not isinstance(content, type):
                yield content


def _is_users_object(fun: object, depth: int) -> bool:
    """Return whether a callable object, or a built-in function, is not one of JAX's own."""
    inner = getattr(fun, "__wrapped__", None)
    if inner is not None and depth:  # a jitted function
        return is_users(inner, depth - 1)
    call = getattr(type(fun), "__call__", None)  # noqa: B004
    if getattr(call, "__code__", None) is None or isinstance(fun, type):
        return not str(getattr(type(fun), "__module__", "")).startswith(("jax", "builtins"))
    if _has_users_code(call):
        return True
    inner = getattr(fun, "fun", None)
    return bool(depth) and callable(inner) and is_users(inner, depth - 1)


_STARRED = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_SIGNATURES = frozenset({"__wrapped__", "__signature__"})
"""Attributes that give a function another signature than its code has."""

_STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


def parameters_of(fun: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of a function's parameters, with their stars; empty if unknown."""
    if inspect.isfunction(fun) and not fun.__dict__.keys() & _SIGNATURES:
        code = fun.__code__
        if not code.co_flags & _STARRED and not code.co_kwonlyargcount:
            return code.co_varnames[: code.co_argcount]  # faster than to make its signature
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return ()
    names = []
    for parameter in signature.parameters.values():
        star = _STARS.get(str(parameter.kind.name), "")
        marked = "=" if parameter.kind is parameter.KEYWORD_ONLY else ""
        names.append(f"{star}{parameter.name}{marked}")
    return tuple(names)


def name_of(fun: object) -> str:
    """Return the name by which JAX's messages call a function."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) else type(fun).__name__
