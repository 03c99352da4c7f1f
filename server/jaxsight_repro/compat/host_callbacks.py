"""Observes calls of the host while a program runs, and pickles callbacks by the names of these.

Applies to JAX 0.8 to 0.12. There is no public hook at the calls of `jax.pure_callback`,
`io_callback` and `jax.debug.callback`.

Private API used: `callback._FlatCallback`, the parameter of the first two (its `__call__`,
`callback_func` and `in_tree`); `debugging.debug_callback_p` (its `impl`, which compiled programs
call, too) and `_make_flat_callback`, whose closures are the parameter of the third.
"""

from __future__ import annotations

import contextlib
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax._src import callback, debugging
from jax.tree_util import PyTreeDef

from jaxsight_source.compat.jaxpr_types import Params
from jaxsight_source.compat.parameters import debug_callback, flat_callback
from jaxsight_source.text.names import identifier
from jaxsight_source.writing.writer import HostFunction

Calling = Callable[[str], AbstractContextManager[Callable[[object], None]]]
"""Returns the context of a call of the function of a name; it yields who takes the results."""


@contextlib.contextmanager
def observed(calling: Calling) -> Iterator[None]:
    """Call `calling` around each call of the host, until the context ends."""
    flat_class: Any = callback._FlatCallback
    debug: Any = debugging.debug_callback_p
    flat_call, debug_call = flat_class.__call__, debug.impl

    @functools.wraps(flat_call)
    def call_flat(self: Any, *arguments: object) -> object:
        with calling(name_of(self.callback_func)) as returned:
            results = flat_call(self, *arguments)
            returned(results)
            return results

    @functools.wraps(debug_call)
    def call_debug(*arguments: object, callback: object, **parameters: object) -> object:
        called = debug_callback(callback)
        name = "callback" if called is None else name_of(called.function)
        with calling(name) as returned:
            results = debug_call(*arguments, callback=callback, **parameters)
            returned(())
            return results

    flat_class.__call__, debug.impl = call_flat, call_debug
    try:
        yield
    finally:
        flat_class.__call__, debug.impl = flat_call, debug_call


_NAMES: dict[object, tuple[Callable[[], object], str]] = {}
"""The names of functions by identity, with what returns the function while it lives."""

_COUNTS: dict[str, int] = {}
"""How many functions have a name that begins so."""


def name_of(function: object) -> str:
    """Return the name by which repros call a function of the host: distinct in this process."""
    owner = getattr(function, "__self__", function)
    code = getattr(function, "__func__", None)
    key = (id(owner), id(code))
    known = _NAMES.get(key)
    if known is not None and known[0]() is owner:
        return known[1]
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    theirs = getattr(inner, "__name__", type(inner).__name__)
    base = f"host_{'function' if theirs == '<lambda>' else identifier(theirs, 'function')}"
    _COUNTS[base] = count = _COUNTS.get(base, 0) + 1
    name = base if count == 1 else f"{base}_{count}"
    try:
        _NAMES[key] = weakref.ref(owner), name
    except TypeError:
        _NAMES[key] = lambda: owner, name
    return name


def reduced(value: object) -> tuple[Callable[..., object], tuple[object, ...]] | None:
    """Return how pickle makes a callback, without its function; None if it is none."""
    if isinstance(value, callback._FlatCallback):
        return _flat, (name_of(value.callback_func), *_portable(value.in_tree, {}))
    if isinstance(value, types.FunctionType) and value.__module__ == debugging.__name__:
        called = debug_callback(value)
        if called is not None:
            return _debug, (name_of(called.function), *_portable(called.tree, called.fixed))
    return None


def _portable(tree: PyTreeDef, fixed: dict[int, object]) -> tuple[object, dict[int, object]]:
    """Return a tree of arguments, and those that are fixed; a flat one if it has other classes."""
    if _is_plain(tree):
        return tree, fixed
    count = tree.num_leaves - len(fixed)
    return jax.tree.structure(((0,) * count, {})), {}


def _is_plain(tree: PyTreeDef) -> bool:
    data = tree.node_data()
    if data is None:
        return True
    return data[0] in (tuple, list, dict, type(None)) and all(map(_is_plain, tree.children()))


@functools.cache
def _host_function(name: str) -> HostFunction:
    return HostFunction(name)


def _flat(name: str, tree: PyTreeDef, _: object) -> object:
    return callback._FlatCallback(_host_function(name), tree)


def _debug(name: str, tree: PyTreeDef, fixed: dict[int, object]) -> object:
    make: Callable[..., object] = debugging._make_flat_callback
    return make(tree, _host_function(name), fixed)


def function_of(primitive: str, parameters: Params) -> HostFunction | None:
    """Return the function of the host that an equation calls, if it was captured."""
    made = parameters.get("callback")
    if made is None:
        return None
    called = debug_callback(made) if primitive == "debug_callback" else flat_callback(made)
    function = None if called is None else called.function
    return function if isinstance(function, HostFunction) else None
