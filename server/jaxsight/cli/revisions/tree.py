"""The files of a git revision in a folder of our cache.

They are read as objects and written by us: a worktree of git's own would run the filters and hooks
that the repository's configuration names, and would have to be taken back.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath

from jaxsight.cli import git
from jaxsight.cli.errors import CommandError, failing_on
from jaxsight.files import private, reading
from jaxsight.projects.python_discovery import package_folders
from jaxsight.text.units import MIB

_KEPT = 4
"""Revisions of a repository that are kept, a choice: the branches that are worked on."""
_AT_ONCE = 64 * MIB
"""Bytes of contents that are read by one call of git."""
_QUOTED = re.compile(r"'([^'\n]+)'")
_MARK = ".git"
"""An empty file in the folder, which makes it the root of a project as the repository's top is. Git
finds no repository there, nor in a folder above."""


@dataclass(frozen=True, slots=True)
class RevisionTree:
    """A revision of a repository."""

    top: Path
    """The top folder of the repository."""
    commit: str
    folder: Path
    """The folder with the revision's files."""

    def then(self, path: Path) -> Path:
        """Return where a file or folder of the working tree is in the revision.

        Raises:
            CommandError: it is not in the repository.
        """
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.top):
            raise CommandError(f"{path} is not in the repository {self.top}")
        return self.folder / real.relative_to(self.top)

    def search_path(self, entries: str, python: str) -> str:
        """Return a value of `PYTHONPATH` with which the revision's own modules are imported.

        Folders of the repository that are on it, or that packages are installed from in editable
        mode, are those of the revision.

        Args:
            entries: the value as it is.
            python: the interpreter.
        """
        given = [each for each in entries.split(os.pathsep) if each]
        folders = [*given, *_installed_from(python)]
        real = [Path(os.path.realpath(each)) for each in folders]
        inside = [there.is_relative_to(self.top) for there in real]
        revised = [
            str(self.then(there)) if is_inside else each
            for each, there, is_inside in zip(folders, real, inside, strict=True)
            if is_inside or each in given
        ]
        return os.pathsep.join(dict.fromkeys(revised))


def _installed_from(python: str) -> Iterator[str]:
    """Yield the folders that packages of an interpreter are installed from in editable mode.

    They are lines of `.pth` files, or the mapping in setuptools' own finders of packages
    (https://setuptools.pypa.io/en/latest/userguide/development_mode.html).
    """
    for packages in package_folders(python) if python else ():
        for file in reading.below(packages, "*.pth"):
            with suppress(reading.UnreadableError):
                lines = reading.text(file).splitlines()
                yield from (line for line in lines if Path(line).is_absolute())
        for file in reading.below(packages, "__editable__*_finder.py"):
            with suppress(reading.UnreadableError):
                quoted = _QUOTED.findall(reading.text(file))
                yield from (str(Path(path).parent) for path in quoted if Path(path).is_absolute())


def revision_tree(where: Path, revision: str) -> RevisionTree:
    """Return a revision with its files, which are written if they are not there.

    Submodules are empty, and files of Git LFS are what git has of them.

    Args:
        where: a folder of the repository.
        revision: as git names it; with `...` after it, where it and `HEAD` parted.

    Raises:
        CommandError: there is no such revision, or its files cannot be written.
    """
    with failing_on(git.NoAnswer, about=f"cannot read the revision {revision}: "):
        top = Path(os.path.realpath(git.top(where)))
        commit = git.commit(where, revision)
        name = hashlib.sha256(os.fsencode(top)).hexdigest()[:16]
        base = private.cache_folder("revisions")
        if base is None:
            raise CommandError("there is no cache folder, as there is no home folder")
        folder = base / name / commit
        if not reading.exists(folder / _MARK):
            with failing_on(OSError, about=f"cannot write the files of {revision}: "):
                _write(where, commit, folder)
    with suppress(OSError):
        os.utime(folder / _MARK)
    _forget(folder.parent)
    return RevisionTree(top, commit, folder)


def _write(where: Path, commit: str, folder: Path) -> None:
    own = Path(os.path.realpath(folder.parent))
    beside = own / f"{private.UNFINISHED}{os.urandom(8).hex()}"
    try:
        private.write(beside / _MARK, b"")
        files = [each for each in git.files(where, commit) if _is_inside(each.path)]
        # Links come last, and none is written below another one, which no tree of git's own has.
        blobs = [each for each in files if each.mode.startswith("100")]
        links = [each for each in files if each.mode == "120000"]
        written = [*blobs, *links]
        ends = accumulate(each.size for each in written)
        numbered = ((end // _AT_ONCE, file) for end, file in zip(ends, written, strict=True))
        for _, portion in groupby(numbered, itemgetter(0)):
            some = [file for _, file in portion]
            contents = git.contents(where, [each.object for each in some])
            for file, content in zip(some, contents, strict=True):
                path = beside / file.path
                if Path(os.path.realpath(path.parent)) != path.parent:
                    raise OSError(f"{file.path} is below a link")
                path.parent.mkdir(parents=True, exist_ok=True)
                if file.mode == "120000":
                    path.symlink_to(os.fsdecode(content))
                else:
                    path.write_bytes(content)
                    path.chmod(0o700 if file.mode == "100755" else 0o600)
        with suppress(OSError):
            beside.rename(folder)  # unless another process was faster
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    if not reading.exists(folder / _MARK):
        raise OSError(f"{folder} cannot be created")


def _is_inside(path: str) -> bool:
    """Return whether a path, which whoever made the commit wrote, is inside of its folder."""
    parts = PurePosixPath(path).parts
    unusual = {"/", "..", ".git"}
    return bool(parts) and not any(
        part.lower() in unusual or (os.name == "nt" and set(part) & set("\\:")) for part in parts
    )


def _forget(folder: Path) -> None:
    """Remove the revisions of a repository that were not used for longest."""
    with suppress(OSError):
        marks = sorted(folder.glob(f"*/{_MARK}"), key=lambda mark: mark.stat().st_mtime)
        for mark in marks[:-_KEPT]:
            shutil.rmtree(mark.parent, ignore_errors=True)
