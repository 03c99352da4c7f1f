"""Sessions that outlive their command: with tracers and compilers that run, and all caches.

A command gets the session of an earlier one if both may do the same: with the same folders, trust,
options and kinds of example inputs. Settings of projects and decisions are read again for each.
What was made of other texts, data, packages or settings is recognized as in an editor.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from jaxsight.cli.parameters import InputsChoice
from jaxsight.cli.trusted_paths import TrustedPaths
from jaxsight.files.texts import Version, stamp_of
from jaxsight.projects.python_discovery import package_folders

if TYPE_CHECKING:
    from jaxsight.session import Session

_MOST = 3
"""Sessions, the last used ones, a choice: one has a tracer of 200 MiB and maybe a compiler."""

_Packages = tuple[tuple[str, Version], ...]


class SessionPool:
    """The sessions of a server."""

    def __init__(self, idle: float) -> None:
        """Keep none yet; `idle`: seconds after which a project ends its processes."""
        self.idle = idle
        self._kept: OrderedDict[tuple[object, ...], Session] = OrderedDict()
        self._packages: WeakKeyDictionary[Session, dict[str, _Packages]] = WeakKeyDictionary()
        """By session and interpreter, those that its tracers have imported."""

    async def take(
        self, trusted: TrustedPaths, inputs: InputsChoice, settings: Mapping[str, object]
    ) -> Session | None:
        """Return a session for a command, as if it had just been made, if there is one."""
        session = self._kept.pop(_key(trusted, inputs, settings), None)
        if session is None:
            return None
        session.engine.projects.trust = trusted.trust
        session.configure(trusted.roots, settings)
        session.files_changed(())
        session.look_for_recordings()
        before = self._packages[session]
        if before != {python: _packages(python) for python in before}:
            before.clear()
            await session.restart()
        while not session.events.empty():
            session.events.get_nowait()
        return session

    async def keep(
        self,
        trusted: TrustedPaths,
        inputs: InputsChoice,
        settings: Mapping[str, object],
        session: Session,
    ) -> None:
        """Keep the session of a command that has ended."""
        engine = session.engine
        for path in list(engine.documents.by_path):
            session.close(path)
        engine.choices.forget()
        packages = self._packages.setdefault(session, {})
        for python in engine.projects.running_pythons():
            if python not in packages:
                packages[python] = _packages(python)
        self._kept[_key(trusted, inputs, settings)] = session
        while len(self._kept) > _MOST:
            _, oldest = self._kept.popitem(last=False)
            await oldest.aclose()

    async def aclose(self) -> None:
        """End all sessions."""
        while self._kept:
            _, session = self._kept.popitem()
            await session.aclose()


def _key(
    trusted: TrustedPaths, inputs: InputsChoice, settings: Mapping[str, object]
) -> tuple[object, ...]:
    """Return what two commands must have in common; with other settings, tracers start again."""
    return trusted.key, inputs, repr(settings)


def _packages(python: str) -> _Packages:
    """Return what changes when packages are installed or removed."""
    folders = [Path(python), *package_folders(python)]
    return tuple((str(folder), stamp_of(str(folder))) for folder in folders)


_CODE = Path(__file__).parents[3]


def own_code() -> list[tuple[str, Version]]:
    """Return the name and the stamp of each file of jaxsight itself.

    A checkout changes them without another version number.
    """
    found: list[tuple[str, Version]] = []
    for folder, folders, files in os.walk(_CODE):
        folders.sort()
        found += (
            (file, stamp_of(os.path.join(folder, file)))  # noqa: PTH118 - 900 files
            for file in sorted(files)
            if file.endswith(".py")
        )
    return found
