"""Calls of functions compiled by JAX, as Python reports them.

`sys.monitoring` (Python 3.12 and later) reports calls from Python code with the object that is
called. From a place that calls anything but a function compiled by JAX it reports one call and no
more: a program is not slower for it, and a place that calls now this and now that is reported until
it calls something else. Calls from C code (`map(f, xs)`) are not reported.

This module uses only the standard library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

_COMPILED = frozenset({"PjitFunction", "PmapFunction"})
"""Types of compiled functions in JAX 0.8 to 0.12, in its extension module."""
_TOOLS = (4, 3)
"""Numbers of tools that Python reserves for nobody; another one may use them."""


def reserve(name: str) -> tuple[Any, int] | None:
    """Return `sys.monitoring` and the number of a tool that is reserved in it, if Python can."""
    monitoring: Any = getattr(sys, "monitoring", None)
    for tool in _TOOLS if monitoring is not None else ():
        if monitoring.get_tool(tool) is None:
            monitoring.use_tool_id(tool, name)
            return monitoring, tool
    return None


def watch(name: str, called: Callable[[object], bool]) -> bool:
    """Report compiled functions before they are called; return whether Python can.

    Args:
        name: that of the tool.
        called: takes the function; returns whether to go on. Its errors end the reports.
    """
    if (reserved := reserve(name)) is None:
        return False
    monitoring, tool = reserved
    disable, compiled = monitoring.DISABLE, _COMPILED

    def on_call(code: CodeType, offset: int, function: object, first: object) -> object:
        if type(function).__name__ not in compiled:
            return disable
        try:
            goes_on = called(function)
        except Exception:  # noqa: BLE001 - nothing here may disturb the program
            goes_on = False
        if not goes_on:
            monitoring.set_events(tool, 0)
        return None

    monitoring.register_callback(tool, monitoring.events.CALL, on_call)
    monitoring.set_events(tool, monitoring.events.CALL)
    return True
