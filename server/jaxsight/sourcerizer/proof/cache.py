"""Cache of expressions that were proved for equations of JAX's own primitives, per process.

Each text is compared as a whole in any case, so a stale entry would be detected there.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from jaxsight.interpreters.compat.staging import is_jaxpr, trace_settings

MOST = 4096
"""The maximum number of cached expressions; the cache is then cleared."""

_kept: dict[Hashable, object] = {}
"""The proved expressions."""

_PLAIN = (type(None), bool, int, float, complex, str, np.dtype, np.generic, enum.Enum)


def key_of(style: str, axes: Sequence[tuple[object, int]], key: Any) -> Hashable | None:
    """Return the cache key of an expression, from its key in one text.

    Return None if its parameters are not JAX's or Python's own, so that their `==` may ignore
    differences.
    """
    if key is None:
        return None
    primitive, parameters = key[:2]
    if not _is_of_jax(primitive) or not all(_is_plain(value) for _, value in parameters):
        return None
    return (
        style,
        tuple(axes),
        key,
        repr(parameters),
        trace_settings(),
    )  # 1, 1.0 and True are equal


def _is_plain(value: Any) -> bool:
    if type(value) in (tuple, list):
        return all(map(_is_plain, value))
    if isinstance(value, _PLAIN):
        return True
    return _is_of_jax(value) and not callable(value) and not is_jaxpr(value)


def _is_of_jax(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def proved(key: Hashable | None) -> Any:
    """Return the proved expression of a key, or None."""
    return None if key is None else _kept.get(key)


def keep(key: Hashable | None, proved: object) -> None:
    """Cache a proved expression."""
    if key is None:
        return
    if len(_kept) >= MOST:
        _kept.clear()
    _kept[key] = proved
