"""Say of `u32[2]` that it is a raw PRNG key, where functions of `jax.random` take or make it."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable

from jaxsight.queries.traces.located_answer import View
from jaxsight.source.analysis.syntax_trees import dotted_name
from jaxsight.source.text import Position, Range
from jaxsight.text.names import bound_in
from jaxsight.text.parsing import expression_in, module_in

_MODULE = "jax.random."
_MAKE = frozenset({"PRNGKey", "split", "fold_in", "key_data", "clone"})
"""Functions of `jax.random` that return keys."""
_FROM_NUMBERS = frozenset({"PRNGKey", "key", "wrap_key_data", "default_prng_impl"})
"""Those that take none; all others take a key first, or as `key`."""
_RAW = re.compile(r"u32\[(?P<several>\S+,)?[24]\]")
"""The types of raw keys: two words for threefry, four for `rbg` (`key_shape` of `PRNGImpl`)."""
_CHUNKS = 64
"""Statements whose names of keys are kept, a choice: a file has few with keys."""

_Origins = tuple[tuple[str, str], ...]


def key_note(view: View, place: Range, texts: Iterable[str]) -> str:
    """Return `PRNG key` or `PRNG keys` for an expression of these types; empty for other values."""
    found = [_RAW.fullmatch(text) for text in texts]
    kinds = {"PRNG keys" if match["several"] else "PRNG key" for match in found if match}
    if len(kinds) != 1 or not all(found):
        return ""
    if (node := expression_in(view.module.slice_text(place))) is None:
        return ""
    makes = makes_key(node, functools.partial(_full_name, dict(_origins(view))))
    is_key = makes or dotted_name(node) in _names_at(view, place.start)
    return kinds.pop() if is_key else ""


def parameter_notes(view: View, parameters: Iterable[tuple[str, str]]) -> list[str]:
    """Return ``PRNG key: `key` `` for the parameters of a function that are raw keys."""
    start = view.subject_range.start
    return [
        f"PRNG key: `{name}`"
        for name, text in parameters
        if _RAW.fullmatch(text) and name in _names_at(view, start)
    ]


def _names_at(view: View, position: Position) -> frozenset[str]:
    """Return the names of keys in the statement of the module at a position."""
    chunk = view.module.chunk_at(position)
    return _names_in(chunk.text, _origins(view)) if chunk is not None else frozenset()


def _origins(view: View) -> _Origins:
    """Return the imported names that lead to `jax.random`."""
    origins = view.module.bindings.origins.items()
    return tuple(sorted((name, full) for name, full in origins if full.partition(".")[0] == "jax"))


@functools.lru_cache(maxsize=_CHUNKS)
def _names_in(text: str, origins: _Origins) -> frozenset[str]:
    full_name = functools.partial(_full_name, dict(origins))
    return key_names(tree, full_name) if (tree := module_in(text)) is not None else frozenset()


def _full_name(origins: dict[str, str], name: str) -> str:
    root, dot, attributes = name.partition(".")
    return f"{origins[root]}{dot}{attributes}" if root in origins else ""


def key_names(tree: ast.AST, full_name: Callable[[str], str]) -> frozenset[str]:
    """Return the names, dotted as written, that hold keys somewhere in a tree.

    Args:
        tree: the code.
        full_name: returns the full name of an imported object.
    """
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value) if makes_key(value, full_name):
                for target in targets:
                    names |= {dotted_name(target), *bound_in(target)}
            case ast.Call(args=args, keywords=keywords):
                function = _function(node, full_name)
                if function and function not in _FROM_NUMBERS:
                    keys = [word.value for word in keywords if word.arg == "key"]
                    names.update(map(dotted_name, (*args[:1], *keys)))
    return frozenset(names - {""})


def makes_key(node: ast.AST, full_name: Callable[[str], str]) -> bool:
    """Return whether an expression calls a function that returns keys."""
    return isinstance(node, ast.Call) and _function(node, full_name) in _MAKE


def _function(call: ast.Call, full_name: Callable[[str], str]) -> str:
    """Return the name of the function in `jax.random` that is called; empty for other calls."""
    name = full_name(dotted_name(call.func))
    return name.removeprefix(_MODULE) if name.startswith(_MODULE) else ""
