"""Report each function that begins to run, with `sys.monitoring` (Python 3.12 and later).

The interpreter calls back once for each code object that does not belong to the project, and never
again: it costs a program nothing from then on.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

from jaxsight.recording.observing.observer import Observer

_TOOLS = (4, 3)
"""Numbers of tools that Python reserves for nobody; another one may use them."""
_NAME = "jaxsight record"


def observe(observer: Observer) -> bool:
    """Begin to observe; return whether that is possible."""
    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - not in Python 3.11
    tool = next((number for number in _TOOLS if monitoring.get_tool(number) is None), None)
    if tool is None:
        return False
    belongs, began, disable = observer.belongs, observer.began, monitoring.DISABLE
    makes, returned, events = observer.makes, observer.returned, monitoring.events
    get_frame = sys._getframe
    watched: set[CodeType] = set()

    def on_start(code: CodeType, _: int) -> object:
        goes_on = belongs(code) and began(get_frame(1))
        if makes(code) and code not in watched:
            watched.add(code)
            monitoring.set_local_events(tool, code, events.PY_RETURN)
        return None if goes_on else disable

    def on_return(code: CodeType, _: int, value: object) -> object:
        return None if returned(get_frame(1), value) else disable

    monitoring.use_tool_id(tool, _NAME)
    monitoring.register_callback(tool, events.PY_START, on_start)
    monitoring.register_callback(tool, events.PY_RETURN, on_return)
    monitoring.set_events(tool, events.PY_START)
    return True
