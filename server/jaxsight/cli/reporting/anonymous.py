"""A report without paths, and without the names of its user and machine.

Names in the code are kept: of functions, arguments and modules, as a report without them would not
be about anything. Words of comments and docstrings are replaced if they are such a name.
"""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TypeVar

_PATH = re.compile(r"(?<![\w.:/\\<-])(?:~|[A-Za-z]:)?(?:[/\\][\w.+@~-]+){2,}[/\\]?")
"""An absolute path with at least two parts; `a/b` is a quotient or a relative path."""
_LIBRARY = re.compile(r"[/\\](?:(?:site|dist)-packages|lib(?:64)?[/\\]python3[\d.]*t?)[/\\].*")
"""The part of a library's path that is the same on all machines."""
_FOLDERS = re.compile(r"[^\s=,'\"]*[/\\](?=[^/\\])")
_HOST = re.compile(r"ssh://[^\s/'\"]+")
_WORD = re.compile(r"[^\W\d]\w*")
_SHORTEST = 3
"""Characters of a name that is replaced, a choice: shorter ones are parts of all texts."""

Data = TypeVar("Data")


def own_names() -> list[tuple[str, str]]:
    """Return the names of this user and machine, each with what stands for it."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # of a user that the system does not know
        user = ""
    host = platform.node()
    named = {user: "user", Path.home().name: "user", host: "host", host.partition(".")[0]: "host"}
    return [(name, other) for name, other in named.items() if len(name) >= _SHORTEST]


def anonymous(data: Data, programs: Iterable[str], names: Iterable[tuple[str, str]]) -> Data:
    """Return a copy of data that names no path, user or host; of libraries, paths begin there.

    Args:
        data: what JSON can say, and dataclasses of it.
        programs: texts whose words are no names of persons: jaxprs and HLO.
        names: those to replace, each with what stands for it.
    """
    words = {word for text in programs for word in _WORD.findall(_PATH.sub("", text))}
    replaced = {name: other for name, other in names if name not in words}
    any_name = re.compile(
        "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(replaced, key=len)[::-1])
        or r"(?!)"
    )

    def plain(text: str) -> str:
        text = _HOST.sub("ssh://host", text)
        text = _PATH.sub(lambda found: _shortened(found[0]), text)
        return any_name.sub(lambda found: replaced[found[0]], text)

    def copied(value: object) -> object:
        match value:
            case str():
                return plain(value)
            case dict():
                return {key: copied(each) for key, each in value.items()}
            case list() | tuple():
                return type(value)(map(copied, value))
            case _ if is_dataclass(value) and not isinstance(value, type):
                own = {each.name: copied(getattr(value, each.name)) for each in fields(value)}
                return type(value)(**own)
            case _:
                return value

    return copied(data)  # type: ignore[return-value]


def without_folders(command: Iterable[str]) -> tuple[str, ...]:
    """Return a command of whose paths and addresses only the last parts are left."""
    return tuple(_FOLDERS.sub("", argument) for argument in command)


def _shortened(path: str) -> str:
    """Return the name of a file; of a library's, the path from the library on."""
    if library := _LIBRARY.search(path):
        return f"…{library[0]}"
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]
