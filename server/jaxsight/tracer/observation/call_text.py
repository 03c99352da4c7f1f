"""Interim."""

from __future__ import annotations

import jax
import numpy as np

from jaxsight.interpreters.compat import avals


def written(arguments: dict[str, object]) -> str | None:
    lines = []
    for name, value in arguments.items():
        text = _text(value)
        if text is None:
            return None
        lines.append(f"{name}: {text}")
    return "\n".join(lines)


def _text(value: object) -> str | None:
    match value:
        case jax.core.Tracer() | jax.Array():
            aval = value.aval
            text = avals.array_text(aval.dtype, aval.shape)
            return f"~{text}" if avals.weak(aval) else text
        case np.ndarray() | np.generic():
            return avals.array_text(value.dtype, value.shape)
        case None | bool() | int() | float() | complex() | str():
            return repr(value)
        case dict():
            items = {key: _text(item) for key, item in value.items()}
            if None in items.values():
                return None
            return "{" + ", ".join(f"{k!r}: {v}" for k, v in items.items()) + "}"
        case tuple() | list():
            parts = [_text(item) for item in value]
            if None in parts:
                return None
            inside = ", ".join(map(str, parts))
            if type(value) is tuple:
                return f"({inside},)" if len(parts) == 1 else f"({inside})"
            return f"[{inside}]"
        case _:
            return None
