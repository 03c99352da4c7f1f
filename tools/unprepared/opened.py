"""Files as an editor opens them: a server for each, and what it shows once it is idle."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.perf.editor import ENVIRONMENT, Editor
from tools.unprepared.corpora import CountedFunction, functions, text_of

_QUIET = 8.0
"""Seconds without other hints after which an idle server has shown everything."""
_POLL = 0.4
_REASON = re.compile(
    r"is not traced: ([^;\n]*)|cannot be traced (with [^\n]*)|is shown (as in [^\n]*)"
)
_SIGNATURE = re.compile(r"```python\n(?P<signature>[\w.<>]+\(.*?)```", re.DOTALL)
_ORIGINS = (
    ("assumed", r"assumed inputs"),
    ("recorded", r"recorded|as in run"),
    ("observed", r"as called|as in a run|as in `"),
)
"""What a hover says of where inputs are from; nothing where they are written in the file."""


@dataclass(frozen=True)
class ShownFunction:
    """What an editor shows of a function."""

    function: CountedFunction
    is_shown: bool
    reason: str
    """Why nothing is shown, as the server says it."""
    origin: str
    """Where its inputs are from; empty if it has none of its own."""
    inputs: Mapping[str, str]
    """The types that its parameters are shown with."""


def shown(
    path: Path, root: Path, python: str, server: str, state: Path, seconds: float
) -> list[ShownFunction]:
    """Open a file of a project, wait until nothing changes, and return what its functions show.

    Args:
        path: the file, or a notebook, of whose cells a file is written beside it.
        root: the folder that is opened.
        python: the Python that traces.
        server: that of the server.
        state: the folder for what servers keep.
        seconds: the longest time to wait.
    """
    text, name = text_of(path), path.relative_to(root).with_suffix(".py").as_posix()
    counted = list(functions(path))
    kept = {"XDG_STATE_HOME": str(state), "XDG_CACHE_HOME": str(state)}
    command = [server, "-m", "jaxsight", "server"]
    with Editor(root, command, environment={**ENVIRONMENT, **kept}) as editor:
        editor.initialize(python, {"target": "cpu"})
        editor.open(name, text)
        hints = _settled(editor, name, seconds)
        return [_of(editor, name, each, hints) for each in counted]


def _settled(editor: Editor, name: str, seconds: float) -> list[tuple[int, str]]:
    """Return the lines and labels of all hints, once the server is idle."""
    everywhere = {"start": _position(0, 0), "end": _position(99999, 0)}
    params = {"textDocument": {"uri": editor.uri(name)}, "range": everywhere}
    begin = last = time.monotonic()
    seen: list[tuple[int, str]] = []
    while (now := time.monotonic()) - begin < seconds:
        status = editor.told.get("jaxsight/status") or {}
        if now - last > _QUIET and status.get("state") not in ("busy", "starting"):
            break
        hints = editor.request("textDocument/inlayHint", params) or []
        found = [(hint["position"]["line"], _label(hint["label"])) for hint in hints]
        if found != seen:
            seen, last = found, time.monotonic()
        time.sleep(_POLL)
    return seen


def _of(
    editor: Editor, name: str, function: CountedFunction, hints: list[tuple[int, str]]
) -> ShownFunction:
    at = _position(function.line, function.column)
    params = {"textDocument": {"uri": editor.uri(name)}, "position": at}
    answer = editor.request("textDocument/hover", params) or {}
    hover = answer.get("contents", {}).get("value", "").replace("\\", "")
    lines = range(function.line, function.last + 1)
    inside = any(line in lines and "[" in label for line, label in hints)
    is_shown = inside or "lambda" in hover
    found = None if is_shown else _REASON.search(hover)
    reason = next(filter(None, found.groups()), "") if found is not None else ""
    signature = _SIGNATURE.search(hover)
    inputs = dict(_parameters(signature["signature"])) if signature is not None else {}
    of = next((kind for kind, words in _ORIGINS if re.search(words, hover)), "written")
    return ShownFunction(function, is_shown, reason, of if inputs else "", inputs)


def _parameters(signature: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a shown signature, with their types: `f(x: f32[3]) -> f32[]`."""
    depth, begin = 0, 0
    for at, letter in enumerate(signature):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "(" and depth == 1:
            begin = at + 1
        elif (letter == "," and depth == 1) or (letter == ")" and not depth):
            name, colon, type_ = signature[begin:at].partition(":")
            if colon:
                yield name.strip(), " ".join(type_.split())
            begin = at + 1
            if not depth:
                return


def _label(label: Any) -> str:
    return "".join(part["value"] for part in label) if isinstance(label, list) else str(label)


def _position(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}
