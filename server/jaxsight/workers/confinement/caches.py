"""Caches of libraries: confined processes read the user's, and write a copy per project that lasts.

The user's own is not written, as other programs read it. Large files of the copy are links.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxsight.files import private
from jaxsight.files.ownership import KEPT


@dataclass(frozen=True, slots=True)
class _Cache:
    variable: str
    """Names its folder."""
    folders: tuple[str, ...] = ()
    """Where it is without the variable, below the home folder."""
    is_always: bool = False
    """Whether there is to be one where the user has none: the library warns otherwise."""


_CACHES = (
    _Cache("MPLCONFIGDIR", (".config/matplotlib", ".cache/matplotlib"), is_always=True),
    _Cache("NUMBA_CACHE_DIR", is_always=True),
    _Cache("HF_HOME", (".cache/huggingface",)),
    _Cache("TFDS_DATA_DIR", ("tensorflow_datasets",)),
    _Cache("JAX_COMPILATION_CACHE_DIR"),
)
_ENTRIES = 20_000
"""Files of a cache that are copied or linked, a choice: that takes about a second."""
_SMALL = 1 << 20
"""Bytes of files that are copied: a library may write them again, which a link does not allow."""


def variables(environment: Mapping[str, str], root: str) -> dict[str, str]:
    """Return the variables of a confined process with its caches, which are made; it may be slow.

    Without a cache folder of the user's there are none.

    Args:
        environment: the variables that it has otherwise.
        root: the project or environment whose copy it is.
    """
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    kept = private.cache_folder("confined", digest)
    if kept is None:
        return dict(environment)
    changed = {KEPT: str(kept)}
    try:
        private.secure(kept)
        for cache in _CACHES:
            copy = kept / cache.variable.lower()
            for folder in _folders(cache, environment):
                _copy(folder, copy)
            if cache.is_always or copy.is_dir():
                copy.mkdir(exist_ok=True)
                changed[cache.variable] = str(copy)
    except OSError:  # a full disk, or one that is read-only
        return dict(environment)
    return {**environment, **changed}


def _folders(cache: _Cache, environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("HOME", "")
    if cache.variable in environment:
        yield Path(environment[cache.variable])  # a relative one is another folder for each program
    elif home:
        yield from (Path(home, folder) for folder in cache.folders)


def _copy(folder: Path, copy: Path) -> None:
    """Copy a cache, but what the copy has already."""
    left = _ENTRIES
    for here, folders, names in os.walk(folder):
        there = copy / os.path.relpath(here, folder)
        if there.is_symlink():  # of what ran confined: it leads anywhere, and this is not confined
            folders.clear()
            continue
        there.mkdir(parents=True, exist_ok=True)
        for name in names[:left]:
            file, target = Path(here, name), there / name
            with contextlib.suppress(OSError):
                # `exists` would follow a link.
                if os.path.lexists(target):
                    continue
                if file.is_symlink():
                    target.symlink_to(file.readlink())
                elif file.stat().st_size <= _SMALL and file.is_file():
                    shutil.copyfile(file, target)
                else:
                    target.symlink_to(file)
        left -= len(names)
        if left <= 0:
            return
