"""What a compiled function was called with: types of its arguments, and its static arguments.

This module uses only the standard library.
"""

from __future__ import annotations

import enum
import inspect
import weakref
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any
from zlib import crc32

_LONGEST = 200
"""Characters of a static argument, a choice: a line."""
_MOST = 50
"""Elements of a static tuple that are written, a choice."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def static_arguments(
    function: object,
    positions: Sequence[int],
    names: Sequence[str],
    arguments: Sequence[object],
    keywords: Mapping[str, object],
) -> dict[str, str]:
    """Return the static arguments of a call, as text by name.

    Args:
        function: the function that is compiled.
        positions: its static positions (`static_argnums`), which may be negative.
        names: its static names (`static_argnames`).
        arguments: the positional arguments of the call.
        keywords: the arguments of the call by name.
    """
    found: dict[str, str] = {}
    parameters = _parameters(function)
    for position in positions:
        at = position + len(arguments) if position < 0 else position
        if 0 <= at < len(arguments):
            name = parameters[at] if at < len(parameters) else f"argument {at}"
            found[name] = written(arguments[at])
    found |= {name: written(keywords[name]) for name in names if name in keywords}
    return found


def _parameters(function: object) -> list[str]:
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in signature.parameters.values() if each.kind in kinds]


def written(value: object) -> str:
    """Return a static argument as text, without running code of the user's but its `__hash__`.

    JAX calls that, too, as static arguments are keys of its cache. A long text ends with a digest,
    so that it differs from others with the same beginning.
    """
    text = _written(value, 3)
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… #{crc32(text.encode('utf-8', 'replace')):08x}"


def _written(value: object, depth: int) -> str:
    if type(value) in _PLAIN:
        # No number of JAX's is that long, and Python refuses to write longer ones.
        if isinstance(value, int) and value.bit_length() > 1000:
            return f"int of {value.bit_length()} bits"
        return repr(value)
    if type(value) in (tuple, frozenset) and depth:
        elements: Any = value
        inside = [_written(each, depth - 1) for each in islice(elements, _MOST)]
        text = ", ".join(sorted(inside) if type(value) is frozenset else inside)
        return f"({text})" if type(value) is tuple else f"{{{text}}}"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, type) or inspect.isroutine(value):
        name = getattr(value, "__qualname__", type(value).__name__)
        return f"{getattr(value, '__module__', '')}.{name}".removeprefix("builtins.")
    try:
        mark = f" #{hash(value) & 0xFFFFFF:06x}"
    except Exception:  # noqa: BLE001 - the user's own `__hash__`
        mark = ""
    return f"{type(value).__name__}{mark}"


class Identities:
    """Numbers functions, so that one that was created again is another one.

    A function that is gone keeps its number, which `id` does not.
    """

    def __init__(self) -> None:
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._next = 1

    def of(self, function: object) -> int:
        """Return the number of a function, 0 if it cannot be known again."""
        try:
            number = self._numbers.get(function)
            if number is None:
                number = self._numbers[function] = self._next
                self._next += 1
        except TypeError:  # it has no weak references, or no hash
            return 0
        return number
