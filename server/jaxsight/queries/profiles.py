"""The profile that is open in the editor, and what it says of the lines of files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jaxsight.files import reading
from jaxsight.source.text import Position
from jaxsight.source.text_shift import shift_between

if TYPE_CHECKING:
    from jaxsight.profiles.profile import Profile, Share
    from jaxsight.profiles.sources import ProfiledSources


@dataclass(frozen=True, slots=True)
class FileShares:
    """The time of each line (from 1) of a file, with the text that the file had in the run."""

    lines: Sequence[str]
    shares: dict[int, Share]

    def moved(self, lines: Sequence[str]) -> Iterator[tuple[int, Share]]:
        """Yield the shares of lines (from 0) of another text, but for those that were edited."""
        shift = shift_between("\n".join(self.lines), "\n".join(lines))
        for line, share in self.shares.items():
            moved = shift.position(Position(line - 1, 0)) if shift.keeps(line - 1) else None
            if moved is not None:
                yield moved.line, share


@dataclass(frozen=True, slots=True)
class OpenedProfile:
    """A profile, with the files of its run as they are here."""

    profile: Profile
    sources: ProfiledSources
    files: dict[str, FileShares] = field(default_factory=dict)
    """By the engine's path; without files that have changed since."""


class _Stopped(Exception):
    """The user has cancelled."""


class OpenProfiles:
    """Reads profiles, and keeps the one that was opened last."""

    def __init__(self) -> None:
        self.path = ""
        """What was opened: a file, or a folder with runs."""
        self.opened: OpenedProfile | None = None

    async def open(
        self, path: str, root: str, report: Callable[[str], object], stop: asyncio.Event
    ) -> OpenedProfile | None:
        """Read a profile in a thread, and keep it; return `None` if it was stopped.

        Args:
            path: a file, or a folder with runs.
            root: the folder where files are that are not at their own paths.
            report: is called with how far it is.
            stop: is set when the user cancels.

        Raises:
            LookupError: there is no profile, or it cannot be read; the message says why.
        """
        from jaxsight.profiles.sources import NoProfile
        from jaxsight.profiles.space import NotAProfile

        loop = asyncio.get_running_loop()

        def progress(done: int, total: int) -> None:
            if stop.is_set():
                raise _Stopped
            loop.call_soon_threadsafe(report, f"{done / max(total, 1):.0%}")

        try:
            opened = await asyncio.to_thread(_read, Path(path), Path(root), progress)
        except _Stopped:
            return None
        except (NoProfile, NotAProfile, reading.UnreadableError) as error:
            raise LookupError(str(error)) from error
        self.path, self.opened = path, opened
        return opened

    def of_file(self, path: str) -> FileShares | None:
        """Return the time of a file's lines in the open profile."""
        return self.opened.files.get(path) if self.opened is not None else None


def _read(path: Path, root: Path, progress: Callable[[int, int], None]) -> OpenedProfile:
    from jaxsight.profiles.profile import Share
    from jaxsight.profiles.reading import read
    from jaxsight.profiles.sources import ProfiledSources, files_of

    profile = read(files_of(path), progress)
    opened = OpenedProfile(profile, ProfiledSources(root, profile.taken))
    for place, share in profile.lines.items():
        file = opened.sources.path(place.file)
        if file is None or place.file in opened.sources.changed:
            continue
        if (shares := opened.files.get(str(file))) is None:
            lines = opened.sources.lines(file)
            shares = opened.files[str(file)] = FileShares(lines, {})
        # Several functions may have a line, such as a lambda expression and what is around it.
        before = shares.shares.get(place.line, Share())
        shares.shares[place.line] = before.with_share(share)
    return opened
