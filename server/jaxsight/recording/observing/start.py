"""Begin to observe this process, before the user's program does.

This module uses only the standard library.
"""

from __future__ import annotations

import os
import sys

from jaxsight.recording import FOLDER, MISSING, PROFILE, ROOT, RUN, TESTS
from jaxsight.recording.observing.functions import ProjectFiles
from jaxsight.recording.observing.log import Log
from jaxsight.recording.observing.observer import Observer


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
        from jaxsight.recording.observing.monitoring import observe
    else:
        from jaxsight.recording.observing.instrumentation import observe
    observe(observer)
    missing = os.environ.get(MISSING)
    if missing is not None:
        from jaxsight.recording.observing import missing_modules

        missing_modules.watch(observer.log)
        missing_modules.replace(filter(None, missing.split(",")))
