"""Find out what the functions of a module may change, from their bytecode.

Libraries change themselves often, when they fill a cache or load a part of themselves.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

from jaxsight.rewriting.compiling import codes_in
from jaxsight.text.names import words
from jaxsight.tracer.isolation.code_origins import WRAPPERS, attribute, wrapped
from jaxsight_source.jaxprs.contents import cell_contents

_MUTATORS = frozenset(
    words("add append clear discard extend insert pop popitem remove setdefault update")
)


def _codes(module: ModuleType) -> Iterator[CodeType]:
    """Yield the code of all functions that a module's own file defines."""
    file = getattr(module, "__file__", None)
    visited: set[int] = set()
    todo: list[Any] = list(vars(module).values())
    while todo:
        value = todo.pop()
        if isinstance(value, CodeType):
            yield from codes_in(value)
            continue
        if id(value) in visited:
            continue
        visited.add(id(value))
        if isinstance(value, type):
            if value.__module__ == module.__name__:
                todo += vars(value).values()
            continue
        for _ in range(WRAPPERS):
            code = attribute(value, "__code__")
            if isinstance(code, CodeType):
                if code.co_filename == file:
                    todo.append(code)
                # A decorator of another file may hold a function of this one.
                todo += filter(callable, map(cell_contents, value.__closure__ or ()))
            value = wrapped(value)
            if value is None:
                break


# For good: modules of the project, which may be unloaded, are not asked about.
@functools.cache
def stored(module: ModuleType) -> frozenset[str]:
    """Return the globals and attributes that a module's functions store.

    `setattr` and `globals` are included if the functions use them.
    """
    names: set[str] = set()
    for code in _codes(module):
        names |= {"setattr", "globals"}.intersection(code.co_names)
        names |= {each.argval for each in dis.get_instructions(code) if each.opname in _STORES}
    return frozenset(names)


_STORES = frozenset({"STORE_GLOBAL", "STORE_ATTR", "DELETE_GLOBAL", "DELETE_ATTR"})


@functools.cache
def mutated(module: ModuleType) -> frozenset[str]:
    """Return the names in functions that change a container."""
    names: set[str] = set()
    for code in _codes(module):
        if not _MUTATORS.isdisjoint(code.co_names) or any(
            instruction.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
            for instruction in dis.get_instructions(code)
        ):
            names.update(code.co_names)
    return frozenset(names)
