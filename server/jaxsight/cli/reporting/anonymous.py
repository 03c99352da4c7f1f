"""A report without paths, and without the names of its user and machine.

Names in the code are kept: of functions, arguments and modules, as a report without them would not
be about anything. Words of comments and docstrings are replaced if they are such a name.
"""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

_PATH = re.compile(r"(?<![\w.:/\\<-])(?:~|[A-Za-z]:)?(?:[/\\][\w.+@~-]+){2,}[/\\]?")
"""An absolute path with at least two parts; `a/b` is a quotient or a relative path."""
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
    """Return a copy of JSON data that names no path, user or host.

    Args:
        data: what JSON can say.
        programs: texts whose words are no names of persons: jaxprs and HLO.
        names: those to replace, each with what stands for it.
    """
    words = {word for text in programs for word in _WORD.findall(text)}
    replaced = {name: other for name, other in names if name not in words}
    any_name = re.compile(
        "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(replaced, key=len)[::-1])
        or r"(?!)"
    )

    def plain(text: str) -> str:
        text = _HOST.sub("ssh://host", text)
        text = _PATH.sub(lambda found: re.split(r"[/\\]", found[0].rstrip("/\\"))[-1], text)
        return any_name.sub(lambda found: replaced[found[0]], text)

    def copied(value: object) -> object:
        match value:
            case str():
                return plain(value)
            case dict():
                return {key: copied(each) for key, each in value.items()}
            case list() | tuple():
                return [copied(each) for each in value]
            case _:
                return value

    return copied(data)  # type: ignore[return-value]
