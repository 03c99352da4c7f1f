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
    # `c_ulong`, as ctypes passes an integer as a C `int`, which cuts off the ident.
    thread, lock = ctypes.c_ulong(threading.get_ident()), threading.Lock()
    raising = ctypes.pythonapi.PyThreadState_SetAsyncExc
    expired = ended = False

    def expire() -> None:
        nonlocal expired
        with lock:
            if not ended:
                expired = True
                raising(thread, ctypes.py_object(TookTooLong))

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.name = "jaxsight-patience"
    timer.start()
    try:
        try:
            yield
        finally:
            timer.cancel()
            with lock:
                ended = True
                if expired:
                    # Takes back an exception that is set but not raised yet.
                    raising(thread, None)
            timer.join()  # it must not look like a thread that user code left
    except TookTooLong:
        if not expired:
            raise  # for an enclosing block
        raise TookTooLong from None
