"""The folder of a case: what a program was about to run, and how it ended.

* `info.json`: versions, variables of the environment, options of JAX.
* `programs/N.pickle`: a primitive with its parameters, written before its first execution.
* `programs/N.first`: the arguments of its first execution.
* `programs/N.failed`: the arguments with which it failed, as in `current`.
* `programs/N.tree`: the call tree around its first execution.
* `current`: the number and the arguments of the execution in flight, or of the last one.
* `tracing`: not empty while JAX traces the outermost call.
* `stack`: the frames of each thread when a signal killed the process, by `faulthandler`.
* `callbacks`: what callbacks did during the execution in flight, or the last one (`recorder`).
* `programs/N.callbacks`: the same during its first execution, or the one that failed.
* `tree.pickle`: the call tree around a failure, if there is one.
* `ended.json`: how the program ended; missing if the process died.

All files but `current`, `tracing`, `stack` and `callbacks` are written beside and renamed, so that
a process that dies leaves whole ones.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from jaxsight_repro.failures import RunFailure

ProgramKind = Literal["script", "module", "pytest", "function"]
"""What a user's program is; a function is run with its example inputs."""

INFO = "info.json"
ENDED = "ended.json"
CURRENT = "current"
CALLBACKS = "callbacks"
TRACING = "tracing"
STACK = "stack"
TREE = "tree.pickle"
PROGRAMS = "programs"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes:
        failure: its failure, or `finished`.
        program: the number of the program whose execution failed, if one did.
        where: the user's innermost line, as `file:line in function`.
        at_trace: whether the failure arose while JAX traced.
    """

    failure: RunFailure
    program: int | None = None
    where: str = ""
    at_trace: bool = False


def write(folder: Path, name: str, content: bytes) -> None:
    """Write a file of the case as a whole."""
    path = folder / name
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(path)


class SlotFile:
    """A file of the case that is written often: in place, with its length written last."""

    def __init__(self, folder: Path, name: str) -> None:
        self._descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)

    def write(self, content: bytes) -> None:
        """Replace the content."""
        os.pwrite(self._descriptor, bytes(_LENGTH), 0)
        os.pwrite(self._descriptor, content, _LENGTH)
        os.pwrite(self._descriptor, len(content).to_bytes(_LENGTH, "little"), 0)

    def mark(self, is_set: bool) -> None:
        """Replace the content by a byte, or by none."""
        os.pwrite(self._descriptor, _MARK if is_set else bytes(_LENGTH + 1), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


_LENGTH = 8
"""Bytes of the length at the beginning of a slot."""

_MARK = (1).to_bytes(_LENGTH, "little") + b"1"


def read_slot(folder: Path, name: str) -> bytes:
    """Return the content of a slot. Raise `FileNotFoundError` if it has none."""
    data = (folder / name).read_bytes()
    content = data[_LENGTH:][: int.from_bytes(data[:_LENGTH], "little")]
    if not content:
        raise FileNotFoundError(name)
    return content


def write_json(folder: Path, name: str, value: object) -> None:
    """Write a JSON file of the case as a whole."""
    write(folder, name, json.dumps(value, indent=1).encode())


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """Return the object of a JSON file, or an empty one if there is no such file."""
    try:
        value = json.loads((folder / name).read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_ended(folder: Path, ended: Ended) -> None:
    """Write how the program ended."""
    write_json(folder, ENDED, asdict(ended))


def read_ended(folder: Path) -> Ended | None:
    """Return how the program ended, or None if its process died."""
    record = read_json(folder, ENDED)
    if not record:
        return None
    return Ended(**{**record, "failure": RunFailure(**record["failure"])})


def of_program(number: int, what: Literal["pickle", "first", "failed", "callbacks", "tree"]) -> str:
    """Return the name of a file about a program."""
    return f"{PROGRAMS}/{number}.{what}"


_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


@contextlib.contextmanager
def with_stack(folder: Path) -> Iterator[None]:
    """Have the frames written to a case if a signal kills the process, unless others have them."""
    if faulthandler.is_enabled():
        yield
        return
    with (folder / STACK).open("w", encoding="utf-8") as file:
        faulthandler.enable(file)
        try:
            yield
        finally:
            faulthandler.disable()


def user_line(folder: Path, is_ours: Callable[[str], bool]) -> str:
    """Return the user's innermost line when the process was killed, as `file:line in function`."""
    with contextlib.suppress(OSError):
        text = (folder / STACK).read_text(encoding="utf-8", errors="replace")
        _, _, current = text.partition("Current thread")
        for file, line, function in _FRAME.findall(current.partition("\n\n")[0]):
            if not (is_installed(file) or is_ours(file)):
                return f"{file}:{line} in {function}"
    return ""


def is_installed(file: str) -> bool:
    """Return whether a file belongs to a package or to Python, and not to the user's program."""
    return "site-packages" in file or file.startswith((sys.base_prefix, "<"))
