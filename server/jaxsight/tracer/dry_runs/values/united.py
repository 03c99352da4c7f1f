"""What several states of a program have in common, and the contents of objects that it changes."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.tracer.dry_runs.values.unknown import Unknown, is_unknown
from jaxsight_source.compat import avals

Value = Any
"""Any object: what may be done with it is asked first."""
_DEEPEST, _MOST = 3, 200
"""Depth in which values are compared, and number of objects whose contents are kept, a choice."""
_ARRAYS = (jax.Array, jax.core.Tracer)
_PLAIN = (bool, int, float, complex, str, bytes, set, frozenset)


def united(values: list[Value]) -> Value:
    """Return what values have in common; something unknown if they differ."""
    result = values[0]
    for value in values[1:]:
        result = _united(result, value, _DEEPEST)
    return result


def _united(one: Value, other: Value, depth: int) -> object:
    if one is other:
        return other
    if isinstance(one, _ARRAYS) and isinstance(other, _ARRAYS):
        if avals.of(one) != avals.of(other):
            return Unknown()
        tracers = [each for each in (one, other) if isinstance(each, jax.core.Tracer)]
        return tracers[-1] if tracers else jnp.copy(other)  # of which only the type is known
    if type(one) is not type(other) or not depth:
        return Unknown()
    match other:
        case np.ndarray() | np.generic():
            is_equal = one.dtype == other.dtype and np.array_equal(one, other)
            return other if is_equal else Unknown()
        case _ if isinstance(other, _PLAIN):
            return other if one == other else Unknown()
        case list() | tuple() | dict() if type(other) in (list, tuple, dict):
            return _united_parts(one, other, depth)
        case FunctionType() | ModuleType() | type() | Unknown():
            return Unknown()
        case _:
            return _united_objects(one, other, depth)


def _united_parts(one: Value, other: Value, depth: int) -> object:
    is_dict = isinstance(other, dict)
    if len(one) != len(other) or (is_dict and [*one] != [*other]):
        return Unknown()
    news, olds = (each.values() if is_dict else each for each in (one, other))
    parts = [_united(a, b, depth - 1) for a, b in zip(news, olds, strict=True)]
    if all(part is old for part, old in zip(parts, olds, strict=True)):
        return other
    return dict(zip(other, parts, strict=True)) if is_dict else type(other)(parts)


def _united_objects(one: Value, other: Value, depth: int) -> object:
    """Return what two trees or instances have in common; all of their parts have to be equal."""
    with contextlib.suppress(Exception):  # user code compares, or makes trees
        tree: object
        other_tree: object
        leaves, tree = jax.tree_util.tree_flatten(one)
        others, other_tree = jax.tree_util.tree_flatten(other)
        is_leaf = len(leaves) == 1 and leaves[0] is one
        if not is_leaf:
            parts = [_united(a, b, depth - 1) for a, b in zip(leaves, others, strict=True)]
            is_known = tree == other_tree and not any(map(is_unknown, parts))
            return jax.tree_util.tree_unflatten(tree, parts) if is_known else Unknown()
        if type(other).__module__ != "builtins" and vars(other):
            inside = _united_parts(vars(one), vars(other), depth)
            return other if inside is vars(other) else Unknown()
    return Unknown()


def values_of(frame: FrameType, names: Iterable[str]) -> dict[str, object]:
    """Return the values of those variables of a frame that are bound."""
    code: CodeType = frame.f_code
    own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    places = {name: frame.f_locals if name in own else frame.f_globals for name in names}
    return {name: place[name] for name, place in places.items() if name in place}


def changeable(values: Iterable[object]) -> list[object]:
    """Return the containers and instances that values lead to, with those in them."""
    found: dict[int, object] = {}
    level = [*values]
    for _ in range(_DEEPEST):
        new = {id(each): each for each in level if content_of(each) is not None}
        level = [part for each in new.values() if id(each) not in found for part in _parts(each)]
        found |= dict([*new.items()][: _MOST - len(found)])
    return [*found.values()]


def _parts(value: object) -> Iterator[object]:
    content: Value = content_of(value)
    yield from content.values() if isinstance(content, dict) else content


def content_of(value: Value) -> Value:
    """Return a copy of what an object holds that can be changed in place; `None` of others."""
    if isinstance(value, list | dict | set):
        return value.copy() if type(value) in (list, dict, set) else None
    if isinstance(value, (*_ARRAYS, np.ndarray, type, ModuleType, FunctionType, Unknown)):
        return None
    try:
        return {**object.__getattribute__(value, "__dict__")}
    except Exception:  # noqa: BLE001 - it has none
        return None


def put(value: Value, content: Value) -> None:
    """Give an object a content again, if it has another one."""
    now = content_of(value)
    if type(now) is set:
        value.clear()
        value.update(content)
        return
    olds, news = (c.values() if isinstance(c, dict) else c for c in (now, content))
    is_same = len(now) == len(content) and all(map(operator.is_, olds, news))
    if is_same and (not isinstance(now, dict) or [*now] == [*content]):
        return
    if type(value) is list:
        value[:] = content
    else:
        names = value if type(value) is dict else object.__getattribute__(value, "__dict__")
        names.clear()
        names.update(content)
