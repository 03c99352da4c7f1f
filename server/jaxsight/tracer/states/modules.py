"""Modules of Flax, Equinox, Haiku and user code: which objects are modules, and how to find parts.

Public classes of flax (`nnx.Module`, `nnx.Optimizer`, `linen.Module`), equinox (`Module`) and haiku
(`Module`) are recognized by their names in a class's bases, so no library is imported.
Attributes are read from `__dict__`: no code of the user's classes runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from jaxsight.recording import expressions
from jaxsight.tracer.compat import registrations
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.isolation.code_origins import USER

ModuleKind = Literal["held", "named", ""]

HELD: ModuleKind = "held"
"""A module that is an attribute of the one around it; its name is that of the attribute."""
NAMED: ModuleKind = "named"
"""A module that knows its own name, as in Linen and Haiku."""

BOOKKEEPING = "_pytree__"
"""Prefix of attributes with internal objects of Flax's NNX."""

_BASES = {
    ("flax.nnx", "Module"): HELD,
    ("flax.nnx", "Optimizer"): HELD,
    ("flax.nnx", "Metric"): HELD,
    ("flax.linen", "Module"): NAMED,
    ("haiku", "Module"): NAMED,
    ("equinox", "Module"): HELD,
}

_MOST_SEARCHED = 2_048
"""Objects that are visited to find a part of a module; one beyond them gets another name."""

Key = str | int
Steps = tuple[tuple[str, Key], ...]
"""How to reach a part: an attribute (`.`), or an item (`[]`), and its name or key."""


def kind(cls: type) -> ModuleKind:
    """Return `HELD` or `NAMED` for a class of modules, else an empty string."""
    for base in cls.__mro__:
        if (of_base := _BASES.get((_library(base), base.__name__))) is not None:
            module = str(cls.__module__)
            # One of Equinox's own wrappers, such as that of `filter_jit`.
            is_internal = module.startswith("equinox.") and not module.startswith("equinox.nn")
            return "" if is_internal else of_base
    registered = registrations.flattening(cls) is not None
    return HELD if registered and code_origins.of_module(str(cls.__module__)) == USER else ""


def is_of(cls: type, library: str) -> bool:
    """Return whether a class, or a base of it, is one of `flax.nnx` or `flax.linen`."""
    return any(_library(base) == library for base in cls.__mro__)


def _library(cls: type) -> str:
    """Return the package of a class; of flax's, the subpackage."""
    package, _, rest = str(cls.__module__).partition(".")
    return f"flax.{rest.partition('.')[0]}" if package == "flax" else package


def is_variable(value: object) -> bool:
    """Return whether a value is a variable of NNX, such as `nnx.Param`."""
    return expressions.is_of(type(value), "flax.nnx", "Variable")


def is_parameter(variable: object) -> bool:
    """Return whether a variable of NNX is a parameter; others are statistics, counters, keys."""
    return expressions.is_of(type(variable), "flax.nnx", "Param")


def graph_root(value: object) -> str | None:
    """Return the name of the root's class for a graph of `nnx.split`, else `None`."""
    if type(value).__name__ != "GraphDef" or not is_of(type(value), "flax.nnx"):
        return None
    nodes = getattr(value, "nodes", None) or (None,)
    root = getattr(nodes[0], "type", None)
    return str(getattr(root, "__name__", root))


def bound_variables(value: object) -> Mapping[str, object] | None:
    """Return the variables of a Linen module that the user bound to them, else `None`.

    A module inside of another one has none of its own: reading them could create them.
    """
    if not is_of(type(value), "flax.linen"):
        return None
    scope: Any = attributes(value).get("scope")
    if scope is None or getattr(scope, "parent", None) is not None:
        return None
    variables = scope.variables()
    return variables if isinstance(variables, Mapping) and variables else None


def attributes(value: object) -> dict[str, object]:
    """Return the attributes in an object's `__dict__`, without those of the library itself."""
    try:
        contents = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    names = [n for n in contents if isinstance(n, str) and not n.startswith(BOOKKEEPING)]
    return {name: contents[name] for name in names}


def own_name(module: object) -> str:
    """Return the name of a module that knows it; without one, that of its class."""
    name = attributes(module).get("name")
    return name if isinstance(name, str) else type(module).__name__


def path(module: object, part: object) -> Steps | None:
    """Return how a module is reached from another one, or from a container of modules."""
    visited = {id(module)}
    waiting: deque[tuple[object, Steps]] = deque([(module, ())])
    while waiting and len(visited) < _MOST_SEARCHED:
        value, steps = waiting.popleft()
        for step, inner in _parts(value):
            if inner is part:
                return (*steps, step)
            holds_parts = isinstance(inner, dict | list | tuple) or kind(type(inner))
            if id(inner) not in visited and holds_parts:
                visited.add(id(inner))
                waiting.append((inner, (*steps, step)))
    return None


def path_of_item(container: object, part: object) -> Steps | None:
    """Return the index or key of a part in a list, tuple or dictionary; else `None`."""
    if not isinstance(container, list | tuple | dict):
        return None
    return next(((step,) for step, item in _parts(container) if item is part), None)


def leads_to(module: object, steps: Steps, part: object) -> bool:
    """Return whether a part is still reached by these steps."""
    value: object = module
    for step in steps:
        value = next((inner for at, inner in _parts(value) if at == step), None)
    return value is part


def labels(steps: Steps) -> tuple[str, ...]:
    """Return the steps for users: `('decoder', 'blocks[3]')`."""
    words: list[str] = []
    for sign, key in steps:
        if sign == "." and not str(key).isdigit():
            words.append(str(key))
        elif words:
            words[-1] += f"[{key!r}]" if sign == "[]" else f"[{key}]"
        else:
            words.append(f"[{key!r}]")
    return tuple(words)


def _parts(value: object) -> Iterable[tuple[tuple[str, Key], object]]:
    match value:
        case list() | tuple():
            base: Any = list if isinstance(value, list) else tuple
            return ((("[]", index), part) for index, part in enumerate(base.__iter__(value)))
        case dict():
            items = dict.items(value)
            return ((("[]", key), part) for key, part in items if isinstance(key, str))
        case _:
            return (((".", name), part) for name, part in attributes(value).items())
