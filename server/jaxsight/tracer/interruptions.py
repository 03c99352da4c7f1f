"""Stop user code, because the server cancelled its request or a statement takes too long."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator


class CancelledByServer(BaseException):
    """Aborts user code of a cancelled request.

    Not an `Exception`: user code must not catch it by accident.
    """


class TookTooLong(BaseException):
    """Aborts a statement that exceeded its time.

    Not an `Exception`: user code must not catch it by accident.
    """


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TookTooLong` in this thread if the block exceeds its time.

    Native code is not interrupted.
    """
    limit = _Limit()
    timer = threading.Timer(seconds, limit.expire)
    timer.daemon = True
    timer.name = "jaxsight-patience"
    timer.start()
    try:
        try:
            yield
        finally:
            timer.cancel()
            limit.end()
            timer.join()  # it must not look like a thread that user code left
    except TookTooLong:
        if not limit.expired:
            raise  # for an enclosing block
        raise TookTooLong from None


class _Limit:
    def __init__(self) -> None:
        self.expired = False
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._ended = False

    def expire(self) -> None:
        with self._lock:
            if not self._ended:
                self.expired = True
                # `c_ulong`, as ctypes passes an integer as a C `int`, which cuts off the ident.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(TookTooLong)
                )

    def end(self) -> None:
        """Ensure that no exception is raised after this."""
        with self._lock:
            self._ended = True
            if self.expired:
                # Takes back an exception that is set but not raised yet.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), None)
