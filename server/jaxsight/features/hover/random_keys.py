"""Say of `u32[2]` that it is a raw PRNG key, where functions of `jax.random` take or make it."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable

from jaxsight.queries.traces.located_answer import View
from jaxsight.source.analysis.random_keys import key_names, makes_key
from jaxsight.source.analysis.syntax_trees import dotted_name
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Position, Range

_RAW = re.compile(r"u32\[(?P<several>\S+,)?[24]\]")
"""The types of raw keys: two words for threefry, four for `rbg`."""
_CHUNKS = 64
"""Number of statements whose names of keys are kept; a file has few."""

_Origins = tuple[tuple[str, str], ...]


def key_note(view: View, place: Range, texts: Iterable[str]) -> str:
    """Return `PRNG key` or `PRNG keys` for an expression of these types; empty for other values."""
    found = [_RAW.fullmatch(text) for text in texts]
    kinds = {"PRNG keys" if match["several"] else "PRNG key" for match in found if match}
    if len(kinds) != 1 or not all(found):
        return ""
    return kinds.pop() if _is_key(view, place) else ""


def parameter_notes(view: View, parameters: Iterable[tuple[str, str]]) -> list[str]:
    """Return ``PRNG key: `key` `` for the parameters of a function that are raw keys."""
    start = view.subject_range.start
    return [
        f"PRNG key: `{name}`"
        for name, text in parameters
        if _RAW.fullmatch(text) and name in _names_at(view, start)
    ]


def _is_key(view: View, place: Range) -> bool:
    source = view.module.slice_text(place)
    try:
        node = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return False
    if makes_key(node, functools.partial(_full_name, dict(_origins(view)))):
        return True
    return dotted_name(node) in _names_at(view, place.start)


def _names_at(view: View, position: Position) -> frozenset[str]:
    """Return the names of keys in the statement of the module at a position."""
    chunk = view.module.chunk_at(position)
    return _names(chunk.text, _origins(view)) if chunk is not None else frozenset()


def _origins(view: View) -> _Origins:
    """Return the imported names that lead to `jax.random`."""
    origins = view.module.bindings.origins.items()
    return tuple(sorted((name, full) for name, full in origins if full.partition(".")[0] == "jax"))


@functools.lru_cache(maxsize=_CHUNKS)
def _names(text: str, origins: _Origins) -> frozenset[str]:
    try:
        return key_names(tree_of(text), functools.partial(_full_name, dict(origins)))
    except (SyntaxError, ValueError):
        return frozenset()


def _full_name(origins: dict[str, str], name: str) -> str:
    root, dot, attributes = name.partition(".")
    return f"{origins[root]}{dot}{attributes}" if root in origins else ""
