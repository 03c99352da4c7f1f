"""`.jaxsight/recorded.json` in a project: what its functions were called with in recorded runs.

The file is text of unknown origin for whoever reads it: sizes are limited, and what has another
form is left out. Like a test runner's cache, its folder ignores itself in git.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath

from jaxsight.files import private, reading
from jaxsight.files.texts import Version, stamp_of

FOLDER = ".jaxsight"
NAME = "recorded.json"
VERSION = 1
LARGEST = 4 << 20
"""Maximum size of the file, in bytes, a choice: 200 of the longest examples, parsed at once."""
SETS = 3
"""Different calls that are kept of a function, each of which is traced and shown as an example."""
_LONGEST = 200
"""Maximum length of a name or a path; longer ones are not of this file's making."""
_IGNORE = "# Made by jaxsight.\n*\n"


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """How a function was called."""

    inputs: str
    """The lines of an *Example inputs* section."""
    calls: int
    """How often it was observed to be called so."""
    is_traced: bool
    """Whether JAX traced it: it is meant to be traced."""
    date: str
    """The day of the run."""


Functions = Mapping[tuple[str, str], tuple[RecordedCall, ...]]
"""Recorded calls by file, relative to the root, and qualified name; the most frequent one first."""


class RecordedFileError(Exception):
    """The file cannot be used; the message is a clause."""


_KEYS = ("inputs", "calls", "traced", "date")
"""Those of a call in the file."""


def path_in(root: str | Path) -> Path:
    """Return the path of the file in a project."""
    return Path(root, FOLDER, NAME)


def is_recorded_file(path: str) -> bool:
    """Return whether a path is that of such a file."""
    return Path(path).parts[-2:] == (FOLDER, NAME)


def stamp(root: str | Path) -> Version:
    """Return the version of the file, which another recording changes."""
    return stamp_of(str(path_in(root)))


def read(root: str | Path) -> Functions:
    """Return what was recorded in a project; nothing if there is no such file.

    Raises:
        RecordedFileError: it cannot be read.
    """
    path = path_in(root)
    try:
        text = reading.text(path, LARGEST)
    except reading.MissingError:
        return {}
    except reading.UnreadableError as error:
        raise RecordedFileError(error.reason) from error
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordedFileError(f"it is not JSON ({error})") from error
    version = content.get("version") if isinstance(content, dict) else None
    if version != VERSION:
        raise RecordedFileError(f"its version is not {VERSION}")
    functions: dict[tuple[str, str], tuple[RecordedCall, ...]] = {}
    files = content.get("functions")
    for file, names in files.items() if isinstance(files, dict) else ():
        inside = PurePosixPath(file)
        if inside.is_absolute() or ".." in inside.parts or len(file) > _LONGEST:
            continue
        for name, calls in names.items() if isinstance(names, dict) else ():
            entries = calls if isinstance(calls, list) else []
            kept = [call for entry in entries if (call := _call(entry))]
            if kept and len(name) <= _LONGEST:
                functions[file, name] = tuple(kept[:SETS])
    return functions


def _call(entry: object) -> RecordedCall | None:
    match entry:
        case {
            "inputs": str(inputs),
            "calls": int(calls),
            "traced": bool(traced),
            "date": str(when),
        }:
            return RecordedCall(inputs, calls, traced, when)
    return None


def merged(earlier: Functions, new: Functions, root: Path) -> Functions:
    """Return earlier recordings with new ones before them, of files that still exist."""
    functions: dict[tuple[str, str], tuple[RecordedCall, ...]] = {}
    for key in (*new, *(key for key in earlier if key not in new)):
        if not reading.is_file(root / key[0]):
            continue
        calls = {call.inputs: call for call in earlier.get(key, ())}
        first = {call.inputs: call for call in new.get(key, ())}
        rest = [call for inputs, call in calls.items() if inputs not in first]
        functions[key] = tuple([*first.values(), *rest][:SETS])
    return functions


def counted(calls: Iterable[tuple[tuple[str, str], RecordedCall]]) -> Functions:
    """Return calls by function, equal ones counted together."""
    by_function: dict[tuple[str, str], dict[str, RecordedCall]] = defaultdict(dict)
    for key, call in calls:
        own = by_function[key]
        if (same := own.get(call.inputs)) is not None:
            count, traced = same.calls + call.calls, same.is_traced or call.is_traced
            call = RecordedCall(call.inputs, count, traced, call.date)
        own[call.inputs] = call
    return {
        key: tuple(sorted(own.values(), key=lambda call: -call.calls)[:SETS])
        for key, own in by_function.items()
    }


def write(root: Path, functions: Functions) -> None:
    """Write what was recorded in a project, at once as a whole.

    Raises:
        OSError: it cannot be written.
    """
    files: dict[str, dict[str, object]] = {}
    for (file, name), calls in sorted(functions.items()):
        entries = [dict(zip(_KEYS, astuple(call), strict=True)) for call in calls]
        files.setdefault(file, {})[name] = entries
    text = json.dumps({"version": VERSION, "functions": files}, indent=1)
    folder = reading.inside(root, FOLDER)
    folder.mkdir(exist_ok=True)
    if not reading.exists(folder / ".gitignore"):
        private.replace(folder / ".gitignore", _IGNORE.encode(), 0o644)
    private.replace(folder / NAME, text.encode(), 0o644)
