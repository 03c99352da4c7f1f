"""How the server starts what it confines, and what this machine holds.

Confined processes read the user's caches of libraries, and write a copy per project that lasts. The
user's own is not written, as other programs read it. Large files of the copy are links.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jaxsight.files import private
from jaxsight.files.ownership import KEPT, WRITABLE
from jaxsight.timeline import VARIABLE
from jaxsight.workers.confinement import landlock, seccomp
from jaxsight.workers.confinement.launch import NEWEST

_LAUNCHER = Path(__file__).parent / "launch.py"


def confined(command: Sequence[str]) -> list[str]:
    """Return the command that runs another one confined, where it has no guardian.

    It may write what its variable `WRITABLE` names.
    """
    if os.name != "posix":
        return list(command)
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(NEWEST), *command]


def variables(environment: Mapping[str, str], root: str = "") -> dict[str, str]:
    """Return the variables of a confined process; this may take a second for large caches.

    Args:
        environment: those that it has otherwise.
        root: the project or environment with which it shares what lasts, if with one.
    """
    made = _with_caches(environment, root) if root else dict(environment)
    # What the user's own variable names, too.
    writable = [environment.get(WRITABLE, ""), made.get(KEPT, ""), os.environ.get(VARIABLE, "")]
    return {**made, WRITABLE: os.pathsep.join(filter(None, writable))}


@contextlib.contextmanager
def temporary(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Provide the variables of a confined process without a guardian, with a folder of its own."""
    with tempfile.TemporaryDirectory("", "jaxsight-", ignore_cleanup_errors=True) as folder:
        yield variables({**environment, "TMPDIR": folder, WRITABLE: folder})


@cache
def held() -> str:
    """Return what confined processes cannot change on this machine, as a sentence for users."""
    if sys.platform == "darwin":
        return "code that is looked at changes no files and uses no network (sandbox-exec)"
    parts = []
    if sys.platform == "linux":
        if abi := landlock.version(NEWEST):
            parts.append(f"changes no files (Landlock {abi})")
        if seccomp.is_available():
            parts.append("uses no network and ends no other process (seccomp)")
    if not parts:
        return "this system confines nothing: only calls of Python are refused, none of C"
    return f"code that is looked at {', '.join(parts)}"


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


def _with_caches(environment: Mapping[str, str], root: str) -> dict[str, str]:
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
            home = environment.get("HOME", "")
            folders = [Path(home, folder) for folder in cache.folders if home]
            if cache.variable in environment:  # a relative one is another folder for each program
                folders = [Path(environment[cache.variable])]
            for folder in folders:
                _copy(folder, copy)
            if cache.is_always or copy.is_dir():
                copy.mkdir(exist_ok=True)
                changed[cache.variable] = str(copy)
    except OSError:  # a full disk, or one that is read-only
        return dict(environment)
    return {**environment, **changed}


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
