"""Output of user code for the editor's output channel: bounded, decoded, with names of real files.

It must never hold more than a line or the limit, however long the output is: the pipe is always
emptied, so user code never waits for a reader.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from jaxsight.wire.chunks import CHUNK_FILE, line_in_chunk

Locate = Callable[[str, str], int | None]
"""Path and chunk id → the line (from 1) in the file at which the chunk begins now; `None` if the
file no longer has it.
"""


def nowhere(path: str, chunk: str) -> int | None:
    """Return `None` for every chunk, so that lines in output are unknown."""
    return None


LONGEST_TAIL = 8 * 1024
"""Characters of an unfinished line that are held back until its end arrives: a line of a traceback
fits, and a progress bar without ends of lines is not held back forever."""

LAST_WORDS = 4 * 1024
"""Bytes of output that the report of a death quotes: a traceback of some twenty frames."""

_IN_TRACEBACK = re.compile(rf'{CHUNK_FILE.pattern}(?P<middle>", line |:)(?P<line>\d+)')


def real_places(text: str, locate: Locate) -> str:
    """Replace the names and lines of compiled chunks by those of the file."""
    if "§" not in text:
        return text

    def replacement(match: re.Match[str]) -> str:
        first = locate(match["path"], match["chunk"])
        line = "?" if first is None else str(first + line_in_chunk(match, int(match["line"])) - 1)
        return match["path"] + match["middle"] + line

    text = _IN_TRACEBACK.sub(replacement, text)
    return CHUNK_FILE.sub(lambda match: match["path"], text)


class OutputMeter:
    """Converts a tracer's output to text, at most `limit` bytes per request."""

    def __init__(self, limit: int, locate: Locate) -> None:
        self._limit = limit
        self._allowed = limit
        self._locate = locate
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._tail = ""
        self._last = b""

    def feed(self, data: bytes) -> str:
        """Return the lines that `data` completes.

        Returns `""` past the limit; reaching it adds one line that says so.
        """
        self._last = (self._last + data[-LAST_WORDS:])[-LAST_WORDS:]
        if self._allowed <= 0:
            return ""
        accepted = data[: self._allowed]
        self._allowed -= len(data)
        text = self._tail + self._decoder.decode(accepted)
        if self._allowed <= 0:
            self._tail = ""
            self._decoder.reset()
            return (
                f"{real_places(text, self._locate)}\n… output truncated after {self._limit} bytes\n"
            )
        end = text.rfind("\n") + 1
        if len(text) - end > LONGEST_TAIL:
            end = len(text)
        self._tail = text[end:]
        return real_places(text[:end], self._locate)

    def finish(self) -> str:
        """Return the unfinished line of a request that ended, and reset the limit."""
        self._allowed = self._limit
        text, self._tail = self._tail, ""
        return real_places(text, self._locate)

    @property
    def last_words(self) -> str:
        """The end of the output of all requests."""
        return real_places(self._last.decode("utf-8", "replace").strip(), self._locate)
