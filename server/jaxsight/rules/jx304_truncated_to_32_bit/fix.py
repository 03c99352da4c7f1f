"""JX304: a 64-bit type that is not given, as the 32-bit one that is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit

_SAID = re.compile(r"`(?P<asked>\w+)` is asked for, but `(?P<given>\w+)`")


def candidates(asked: Asked) -> Iterator[Candidate]:
    """The type's name with 32 in place of 64, wherever it stands in the expression."""
    said = _SAID.search(asked.finding.message)
    if said is None:
        return
    edits: list[Edit] = []
    for node in asked.find(ast.Attribute, ast.Name, ast.Constant):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name == said["asked"]:
                text = asked.text(node)
                edits.append(asked.replace(node, text.removesuffix(name) + said["given"]))
            case ast.Constant(value=str(name)) if name == said["asked"]:
                edits.append(asked.replace(node, asked.text(node).replace(name, said["given"])))
    if edits:
        yield Candidate(f"Ask for `{said['given']}`", tuple(edits))


REMEDY = Remedy(
    "the 32-bit type",
    candidates,
)
