"""Links from the lines of a repro to the user's text."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from jaxsight.features.model import Linked
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from jaxsight.text.parsing import parse

_ORIGIN = re.compile(r"Captured from (.+):(\d+) in (\S+)\.$")


def links_of(text: str, root: str, path: str, module: Module, subject: str) -> tuple[Linked, ...]:
    """Return links from the functions of a repro, and from the place of its failure.

    Functions are linked to the first one of the same name, `main` to the subject.

    Args:
        text: the repro.
        root: the folder in which it was written, which its places are relative to.
        path: the file that the repro is of.
        module: the module of that file.
        subject: the qualified name of the function that was called.
    """
    links = []
    for number, line in enumerate(text.split("\n")):
        match = _ORIGIN.match(line)
        if match is not None and Path(root, match[1]) == Path(path):
            at = int(match[2]) - 1
            end = len(module.line(at)) if at < len(module.text.split("\n")) else 0
            links.append(Linked(number, match[3], Range(Position(at, 0), Position(at, end))))
    places = {}
    for placed in reversed(module.functions):
        name = placed.function.qualname
        places[name.rpartition(".")[2]] = placed.name_range
        if name == subject:
            places["main"] = placed.name_range
    links += [
        Linked(node.lineno - 1, node.name, places[node.name])
        for node in ast.walk(parse(text))
        if isinstance(node, ast.FunctionDef) and node.name in places
    ]
    return tuple(sorted(links, key=lambda link: link.line))
