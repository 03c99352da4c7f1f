"""Begin to observe this process, before the user's program does.

This module uses only the standard library.
"""

from __future__ import annotations

import os
import sys
from types import CodeType

from jaxsight.recording import FOLDER, MISSING, PROFILE, ROOT, RUN, TESTS
from jaxsight.recording.compiled_calls import reserve
from jaxsight.recording.observing.functions import ProjectFiles
from jaxsight.recording.observing.log import Log
from jaxsight.recording.observing.observer import Observer

# Report each function that begins to run, with `sys.monitoring` (Python 3.12 and later).
#
# The interpreter calls back once for each code object that does not belong to the project, and
# never again: it costs a program nothing from then on.

_NAME = "jaxsight record"


def observe(observer: Observer) -> bool:
    """Begin to observe; return whether that is possible."""
    if (reserved := reserve(_NAME)) is None:
        return False
    monitoring, tool = reserved
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

    monitoring.register_callback(tool, events.PY_START, on_start)
    monitoring.register_callback(tool, events.PY_RETURN, on_return)
    monitoring.set_events(tool, events.PY_START)
    return True


def start() -> None:
    """Observe this process if the environment asks for it."""
    if compiled := os.environ.get(RUN):
        from jaxsight.recording.programs import start as programs

        programs.start(compiled)
        return
    if os.environ.get(PROFILE):
        if sys.version_info >= (3, 12):
            from jaxsight.recording.observing import profiled

            profiled.start()
        return
    folder, root = os.environ.get(FOLDER), os.environ.get(ROOT)
    if not folder or not root:
        return
    observer = Observer(ProjectFiles(root, tests=bool(os.environ.get(TESTS))), Log(folder))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=observer.forked)
    if sys.version_info >= (3, 12):
        from jaxsight.recording.observing.start import observe
    else:
        from jaxsight.recording.observing.instrumentation import observe
    observe(observer)
    if (missing := os.environ.get(MISSING)) is not None:
        from jaxsight.recording.observing import missing_modules

        missing_modules.watch(observer.log)
        missing_modules.replace(filter(None, missing.split(",")))
