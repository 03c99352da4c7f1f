"""The user's line at which a process is killed by a signal: `faulthandler` writes its frames."""

from __future__ import annotations

import contextlib
import faulthandler
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from jaxsight_repro.capturing import case

_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


@contextlib.contextmanager
def written(folder: Path) -> Iterator[None]:
    """Have the frames written to a case if a signal kills the process, unless others have them."""
    if faulthandler.is_enabled():
        yield
        return
    with (folder / case.STACK).open("w", encoding="utf-8") as file:
        faulthandler.enable(file)
        try:
            yield
        finally:
            faulthandler.disable()


def user_line(folder: Path, is_ours: Callable[[str], bool]) -> str:
    """Return the user's innermost line when the process was killed, as `file:line in function`."""
    with contextlib.suppress(OSError):
        text = (folder / case.STACK).read_text(encoding="utf-8", errors="replace")
        _, _, current = text.partition("Current thread")
        for file, line, function in _FRAME.findall(current.partition("\n\n")[0]):
            if not (is_installed(file) or is_ours(file)):
                return f"{file}:{line} in {function}"
    return ""


def is_installed(file: str) -> bool:
    """Return whether a file belongs to a package or to Python, and not to the user's program."""
    return "site-packages" in file or file.startswith((sys.base_prefix, "<"))
