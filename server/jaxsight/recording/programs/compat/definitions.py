"""The functions that jaxprs were traced from. Applies to JAX 0.8 to 0.12.

Private API used: a jaxpr's `debug_info`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_DEFINED = re.compile(r"(?P<name>.*?) at (?P<file>.*):(?P<line>\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Definition:
    """Where the function of a jaxpr is defined, and what it takes and returns."""

    name: str
    file: str = ""
    line: int = 0
    arguments: tuple[tuple[str, str], ...] = ()
    """Names and types of its arguments."""
    results: tuple[str, ...] = ()


def definition(jaxpr: Any) -> Definition:
    """Return what a jaxpr says of its function."""
    opened = getattr(jaxpr, "jaxpr", jaxpr)
    info = opened.debug_info
    match = _DEFINED.fullmatch(info.func_src_info or "")
    arguments = [variable.aval for variable in opened.invars]
    names = info.arg_names or ()
    if len(names) != len(arguments):
        names = [""] * len(arguments)
    results = tuple(_type(getattr(each, "aval", None)) for each in opened.outvars)
    types = map(_type, arguments)
    return Definition(
        match["name"] if match else str(info.func_src_info or ""),
        match["file"] if match else "",
        int(match["line"]) if match else 0,
        tuple((str(name or ""), type_) for name, type_ in zip(names, types, strict=True)),
        results,
    )


def _type(aval: Any) -> str:
    """Return a type as JAX writes it, `f32[8]`, with a mark if it is weak: `f32[]*`."""
    try:
        text = str(aval.str_short(short_dtypes=True))
    except (AttributeError, TypeError):
        return str(aval)
    return f"{text}*" if getattr(aval, "weak_type", False) else text
