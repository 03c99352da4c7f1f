"""Divide a printed jaxpr into sections, by the functions and modules of its equations.

A section begins with a comment, `# loss/model/blocks[0]/attn`, before its first equation; a module
with modules of its own has one for each level. Editors fold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

from jaxsight.text.inert import one_line
from jaxsight.tracer.observation import scopes
from jaxsight.tracer.observation.scopes import Scope
from jaxsight.wire.messages.replies import FOLDED_LINES, Link, Shown
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.staging import open_jaxpr

_PARAMETER = re.compile(r"\w+=|\{ lambda|\(")
"""How a line begins that is not the first one of an equation."""


def divided(shown: Shown, jaxpr: object) -> Shown:
    """Return the text of a long jaxpr of several functions or modules with its sections."""
    by_path = dict(_scopes(jaxpr, "", None))
    if len(by_path) <= FOLDED_LINES or len(set(by_path.values())) < 2:
        return shown
    info = open_jaxpr(jaxpr).debug_info
    words = str(info.func_src_info).split() if info is not None else []
    added = _comments(shown, by_path, words[0] if words and words[0].isidentifier() else "function")
    lines: list[str] = []
    moved: dict[int, int] = {}
    for number, line in enumerate(shown.text.split("\n")):
        lines += added.get(number, ())
        moved[number] = len(lines)
        lines.append(line)
    links = tuple(Link(moved[link.line], link.path, link.span) for link in shown.links)
    return replace(shown, text="\n".join(lines), links=links)


def _scopes(jaxpr: object, prefix: str, around: Scope | None) -> Iterator[tuple[str, Scope]]:
    for index, equation in enumerate(open_jaxpr(jaxpr).eqns):
        path = f"{prefix}{index}"
        scope = scopes.scope(equation, around)
        yield path, scope
        for part in inner_jaxprs(equation):
            yield from _scopes(part.jaxpr, f"{path}/{part.name}/", scope)


def _comments(shown: Shown, by_path: Mapping[str, Scope], name: str) -> dict[int, list[str]]:
    """Return the comments before each line."""
    lines = shown.text.split("\n")
    current: dict[str, Scope] = {}
    begun: set[str] = set()
    added: dict[int, list[str]] = {}
    for link in shown.links:
        path, line = link.path, lines[link.line]
        if path in begun or path not in by_path:
            continue
        begun.add(path)
        if _PARAMETER.match(line.lstrip()):
            continue
        around, _, _ = path.rpartition("/")
        outer = by_path.get(around.rpartition("/")[0], ())
        before, after = current.get(around, outer), by_path[path]
        if before == after:
            continue
        current[around] = after
        indent = line[: len(line) - len(line.lstrip())]
        added[link.line] = [f"{indent}# {text}" for text in _headings(before, after, name)]
    return added


def _headings(before: Scope, after: Scope, name: str) -> Iterator[str]:
    """Yield a heading for each level that begins, or that of the level that is returned to."""
    pairs = zip(before, after, strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    for level in range(common + 1, len(after) + 1):
        yield one_line("/".join(after[:level]))
    if common == len(after):
        yield one_line("/".join(after) or name)
