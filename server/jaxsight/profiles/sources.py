"""The lines that a profile names, in the files as they are here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from jaxsight.files import reading
from jaxsight.profiles.places import CodePlace

# Find the files of a profile: one for each host of a run.

ENDING = ".xplane.pb"
_RUNS = Path("plugins") / "profile"
"""Where TensorBoard and XProf look for runs, and `jax.profiler` writes them."""


class NoProfile(Exception):
    """There is no profile; the message says what was looked for."""


@dataclass(frozen=True, slots=True)
class ProfileFiles:
    """The files of the newest run, and the names of the others."""

    paths: tuple[Path, ...]
    run: str = ""
    others: tuple[str, ...] = ()


def files_of(path: Path) -> ProfileFiles:
    """Return the files of a profile.

    Args:
        path: a file, the folder of a run, or a log folder with runs.

    Raises:
        NoProfile: there is none.
    """
    if reading.is_file(path):
        if not path.name.endswith(".pb"):
            raise NoProfile(f"{path} is not a profile; expected a file `HOST{ENDING}`")
        return ProfileFiles((path,))
    if not reading.is_folder(path):
        raise NoProfile(f"{path} does not exist")
    if own := reading.below(path, f"*{ENDING}"):
        return ProfileFiles(tuple(own), path.name)
    runs: dict[Path, list[Path]] = {}
    for pattern in (_RUNS / "*", Path("*") / _RUNS / "*"):
        for file in reading.below(path, str(pattern / f"*{ENDING}")):
            runs.setdefault(file.parent, []).append(file)
    if not runs:
        raise NoProfile(f"no profile in {path}; expected {_RUNS}/RUN/HOST{ENDING}")
    # Runs are named after the time at which they began.
    newest, *others = sorted(runs, key=lambda run: run.name, reverse=True)
    return ProfileFiles(tuple(runs[newest]), newest.name, tuple(run.name for run in others))


_LATE = 1.0
"""Seconds that a file may be newer than a profile and still be that of the run, a choice: clocks of
file systems differ by less."""


@dataclass(slots=True)
class ProfiledSources:
    """Files of a profile, which may be from another machine."""

    folder: Path
    """Where files are looked for that are not at their own path."""
    taken: float
    """The time at which the profile began; 0 if it is not known."""
    _paths: dict[str, Path | None] = field(default_factory=dict)
    _texts: dict[Path, list[str]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    """Files that are newer than the profile; their lines may be others now."""

    def path(self, file: str) -> Path | None:
        """Return where a file is here: at its own path, or at the end of it below the folder."""
        if file in self._paths:
            return self._paths[file]
        windows = "\\" in file and "/" not in file
        parts = (PureWindowsPath(file) if windows else PurePosixPath(file)).parts
        candidates = [Path(file)] if Path(file).is_absolute() else []
        candidates += [self.folder.joinpath(*parts[at:]) for at in range(1, len(parts))]
        found = self._paths[file] = next(
            (
                path
                for path in candidates
                if path.suffix == ".py" and ".." not in parts and reading.is_file(path)
            ),
            None,
        )
        if found is not None and self.taken and found.stat().st_mtime > self.taken + _LATE:
            self.changed.add(file)
        return found

    def name(self, place: CodePlace) -> str:
        """Return a place as `FILE:LINE`, the file relative to the folder if it is in it."""
        if (path := self.path(place.file)) is None:
            return f"{place.file}:{place.line}"
        shown = path.relative_to(self.folder) if path.is_relative_to(self.folder) else path
        return f"{shown}:{place.line}"

    def text(self, place: CodePlace) -> str:
        """Return a line without its indentation; empty if it may be another one now."""
        if (path := self.path(place.file)) is None or place.file in self.changed:
            return ""
        lines = self.lines(path)
        return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""

    def lines(self, path: Path) -> list[str]:
        """Return the lines of a file here; none if it cannot be read."""
        if path not in self._texts:
            try:
                text = reading.source(path).replace("\r\n", "\n").replace("\r", "\n")
                self._texts[path] = text.split("\n")
            except reading.UnreadableError:
                self._texts[path] = []
        return self._texts[path]
