"""JX407: a donation of a buffer that fits no result, dropped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate, integer
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit, Range

_NAMED = re.compile(r"`(?P<name>\w+)[^`]*` \(")
_DONATES = ("donate_argnums", "donate_argnames")


def candidates(asked: Asked) -> Iterator[Candidate]:
    """The argument taken out of `donate_argnums` or `donate_argnames`; the keyword too, where nothing else is in it."""
    function, said = asked.subject, _NAMED.match(asked.finding.message)
    if function is None or said is None:
        return
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        for key in decorator.keywords:
            if key.arg not in _DONATES:
                continue
            given = key.value.elts if isinstance(key.value, ast.Tuple | ast.List) else [key.value]
            kept = [each for each in given if _name(each, names) != said["name"]]
            if len(kept) == len(given):
                continue
            if not kept:
                yield Candidate(
                    f"Do not donate `{said['name']}`", (_without(asked, decorator, key),)
                )
            else:
                texts = ", ".join(map(asked.text, kept))
                edit = asked.replace(key.value, f"({texts},)" if len(kept) == 1 else f"({texts})")
                yield Candidate(f"Do not donate `{said['name']}`", (edit,))


def _name(node: ast.expr, names: list[str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    index = integer(node)
    return names[index] if index is not None and -len(names) <= index < len(names) else ""


def _without(asked: Asked, call: ast.Call, key: ast.keyword) -> Edit:
    """A call without a keyword, and without the comma before it (or behind it, where it is the first)."""
    parts = asked.arguments(call)
    place = asked.range(key)
    index = parts.index(place)
    if index:
        return Edit(Range(parts[index - 1].end, place.end), "")
    end = parts[1].start if len(parts) > 1 else place.end
    return Edit(Range(place.start, end), "")


REMEDY = Remedy(
    "the argument, not donated",
    candidates,
)
