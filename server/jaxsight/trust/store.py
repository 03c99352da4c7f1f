"""The user's decisions on disk: `trust.json` in the user's state folder, shared by all processes.

A change is read, merged and written under a lock, and moved into place, so that concurrent servers
lose none of each other's decisions. A file that is invalid, or that others may have written, is
ignored with a line in the log.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from jaxsight.files import private
from jaxsight.files.locks import try_lock
from jaxsight.files.ownership import BY_OTHERS, NotOurs, check_own, read_own

log = logging.getLogger(__name__)

NAME = "trust.json"
VERSION = 1
_MOST = 8 * 1024 * 1024
"""Bytes of a file of decisions that is read: room for tens of thousands of folders."""
_PATIENCE = 5.0
"""Seconds to wait for another process that is writing: it takes milliseconds, more means that it is
stopped or stuck, and the user waits."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The user's decisions: real paths of trusted folders, and what each folder may reach."""

    folders: frozenset[str] = frozenset()
    approvals: frozenset[tuple[str, str]] = frozenset()
    """A folder and what it may reach: `ssh://HOST`, or the path of an interpreter."""

    def covers(self, folder: str) -> bool:
        """Return whether a folder (a real path), or one above it, is trusted."""
        return any(above in self.folders for above in upward(folder))

    def approves(self, folder: str, target: str) -> bool:
        """Return whether a folder (a real path), or one above it, may reach something."""
        return any((above, target) in self.approvals for above in upward(folder))


def upward(folder: str) -> Iterator[str]:
    """Yield a folder and those above it."""
    path = PurePath(folder)
    yield folder
    for parent in path.parents:
        yield str(parent)


class TrustStore:
    """A file of decisions. Without a file, or if it cannot be written, nothing is stored."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.problem = ""
        """Why the file is ignored; empty while it is not."""
        self._known = Decisions()
        self._seen: object = None

    def read(self) -> Decisions:
        """Return the current decisions; the file is read again only after it changed."""
        if self.file is None:
            return self._known
        if (signature := self._signature()) != self._seen:
            self._seen = signature
            self._known = self._read()
        return self._known

    def change(self, edit: Callable[[Decisions], Decisions]) -> bool:
        """Write the decisions changed by `edit`; return whether that was possible.

        It blocks for a moment.
        """
        if self.file is None:
            return False
        try:
            _make_folder(self.file.parent)
            with _locked(self.file.with_suffix(".lock")):
                now = self._read()
                if self.problem.startswith(_NEWER):
                    return False
                changed = edit(now)
                approvals = sorted(changed.approvals)
                content = {
                    "version": VERSION,
                    "folders": sorted(changed.folders),
                    "approvals": [{"folder": own, "what": target} for own, target in approvals],
                }
                text = f"{json.dumps(content, indent=2)}\n"
                private.replace(self.file, text.encode("ascii"), sync=True)
                self._known, self._seen = changed, self._signature()
        except (OSError, NotOurs) as error:
            log.warning("cannot write %s: %s", self.file, error)
            return False
        return True

    def _signature(self) -> object:
        assert self.file is not None
        try:
            status = self.file.stat()
        except (OSError, ValueError):
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode, status.st_uid

    def _read(self) -> Decisions:
        assert self.file is not None
        self.problem = ""
        try:
            check_own(self.file.parent.stat(), BY_OTHERS)
            return _decoded(read_own(self.file, most=_MOST, forbidden=BY_OTHERS))
        except FileNotFoundError:
            return Decisions()
        except (OSError, NotOurs, ValueError, RecursionError) as error:
            self.problem = str(error)
            log.warning("ignoring %s: %s", self.file, error)
            return Decisions()


def store_file() -> Path | None:
    """Return the path of the decisions; `None` if there is no home folder."""
    return private.own_folder("user_state_dir", NAME)


_NEWER = "it was written by a newer jaxsight"


def _decoded(data: bytes) -> Decisions:
    """Return the decisions in the file's content.

    Raises:
        ValueError: the content is invalid.
        NotOurs: a newer version wrote it.
    """
    match json.loads(data):
        case {"version": int(version)} if version > VERSION:
            raise NotOurs(f"{_NEWER} (version {version} of the file)")
        case {"version": int(), "folders": [*folders], "approvals": [*approvals]}:
            pairs = frozenset(map(_approval, approvals))
            return Decisions(frozenset(map(_text, folders)), pairs)
    raise ValueError("expected an object with a version, folders and approvals")


def _approval(value: object) -> tuple[str, str]:
    match value:
        case {"folder": folder, "what": target}:
            return _text(folder), _text(target)
    raise ValueError(f"expected a folder and what it may reach, got {value!r:.40}")


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"expected a text, got {value!r:.40}")
    return value


def _make_folder(folder: Path) -> None:
    """Create the folder for this user alone.

    Raises:
        OSError: it cannot be created.
        NotOurs: it belongs to another user.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    check_own(status, 0)
    if status.st_mode & 0o077 and os.name != "nt":
        folder.chmod(0o700)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes from writing in the meantime.

    Raises:
        OSError: the lock is not available within `_PATIENCE`.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
    try:
        deadline = time.monotonic() + _PATIENCE
        while not try_lock(descriptor):
            if time.monotonic() > deadline:
                raise BlockingIOError(f"another process holds {path}")
            time.sleep(0.02)  # writing takes about as long
        yield
    finally:
        os.close(descriptor)  # which unlocks it
