"""Find the files of a profile: one for each host of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jaxsight.files import reading

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
