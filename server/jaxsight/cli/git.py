"""Run git in a repository that may be hostile: it reads objects that are there, and starts nothing.

A repository's own configuration names programs: for ssh and other transports, which fetch the
missing objects of a partial clone, for hooks, file system monitors, pagers, filters and diffs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.files import reading
from jaxsight.text import units
from jaxsight.workers.own_python import program

_SECONDS = 20.0
"""Seconds of reading one object, which takes milliseconds; a pipe in its place would take
forever."""

_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "protocol.allow": "never",
    "credential.helper": "",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "gc.auto": "0",
}
"""They win over those of the repository and of the user."""

_VARIABLES = {
    "GIT_NO_LAZY_FETCH": "1",  # since git 2.44; the protocols below are for older ones
    "GIT_ALLOW_PROTOCOL": "none",  # it wins over `protocol.NAME.allow`
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_SSH_COMMAND": "false",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_PAGER": "cat",
}


class NoAnswer(Exception):
    """Git is not installed, or refuses; the text says why."""


def committed(path: Path, revision: str) -> bytes:
    """Return the content of a file in a revision, without filters.

    Raises:
        NoAnswer: there is no such revision or file, or its content is not on this machine.
    """
    if revision.startswith("-"):
        raise NoAnswer(f"{revision!r} is not a revision")
    name = f"{revision}:./{path.name}"
    if int(_run(path.parent, "cat-file", "-s", name)) > reading.SOURCE:
        raise NoAnswer(f"it is larger than {units.size(reading.SOURCE)}")
    return _run(path.parent, "cat-file", "blob", name)


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of a revision."""

    path: str
    """Relative to the top of the repository, with `/`."""
    mode: str
    """`100644`, `100755` for a program, `120000` for a link, `160000` for a submodule."""
    object: str
    size: int


def top(folder: Path) -> Path:
    """Return the top folder of the repository that a folder is in.

    Raises:
        NoAnswer: it is in none.
    """
    return Path(os.fsdecode(_run(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")))


def commit(folder: Path, revision: str) -> str:
    """Return the commit that a revision names; of `REVISION...`, where it and `HEAD` parted.

    Raises:
        NoAnswer: there is no such revision.
    """
    if revision.startswith("-"):
        raise NoAnswer(f"{revision!r} is not a revision")
    name = revision.removesuffix("...")
    found = _run(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    if name != revision:
        found = _run(folder, "merge-base", found, "HEAD").decode().strip()
    return found


def files(folder: Path, commit: str) -> Iterator[TreeFile]:
    """Yield the files of a commit.

    Raises:
        NoAnswer: git does not have it.
    """
    listed = _run(folder, "ls-tree", "-r", "-z", "--long", "--full-tree", commit)
    for row in listed.split(b"\0"):
        about, _, path = row.partition(b"\t")
        if path:
            mode, _, object, size = about.decode().split()
            known = int(size) if size.isdigit() else 0
            yield TreeFile(os.fsdecode(path), mode, object, known)


def contents(folder: Path, objects: Sequence[str]) -> Iterator[bytes]:
    """Yield the contents of objects, in order, without filters.

    Raises:
        NoAnswer: one is not on this machine.
    """
    read = _run(folder, "cat-file", "--batch", given="\n".join([*objects, ""]).encode())
    at = 0
    for object in objects:
        end = read.index(b"\n", at)
        head = read[at:end].split()
        if len(head) != 3:
            raise NoAnswer(f"{object} is not on this machine (a partial clone); fetch it first")
        at = end + 1 + int(head[2])
        yield read[end + 1 : at]
        at += 1


def _run(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Return what a command of git prints, which reads objects only.

    Raises:
        NoAnswer: it fails.
    """
    git = program("git")
    if git is None:
        raise NoAnswer("git is not installed")
    settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
    try:
        done = subprocess.run(
            [git, "--no-pager", *settings, *arguments],
            cwd=folder,
            env={**os.environ, **_VARIABLES},
            input=given,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except OSError as error:
        raise NoAnswer(error.strerror or str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise NoAnswer(f"git did not answer within {_SECONDS:g} s") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        if any("promisor" in line or "lazy fetching" in line for line in lines):
            raise NoAnswer("its content is not on this machine (a partial clone); fetch it first")
        fatal = [line for line in lines if line.startswith("fatal: ")]
        raise NoAnswer([*(lines or ["no output"])[-1:], *fatal][-1].removeprefix("fatal: "))
    return done.stdout
