"""Removes the names of results that nothing reads: `first, *_ = f(x)`."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

from jaxsight.sourcerizer.text.exprs import (
    Atom,
    Sequence_,
    Star,
)
from jaxsight.sourcerizer.text.name_uses import names_read
from jaxsight.sourcerizer.text.rewriting import (
    UNREAD,
    own_statements,
    rewritten,
)
from jaxsight.sourcerizer.text.statements import (
    Assign,
    Statement,
)


def unread(body: Sequence[Statement]) -> list[Statement]:
    """Return the statements of a function without names for unread results: `first, *_ = f(x)`."""
    counts = Counter(names_read(body))
    changed: dict[int, Statement | None] = {}
    for statement in own_statements(body):
        if not isinstance(statement, Assign) or not isinstance(statement.targets, Sequence_):
            continue
        targets = _read_alone(statement.targets, counts)
        if targets != statement.targets:
            changed[id(statement)] = dataclasses.replace(statement, targets=targets)
        if targets == Sequence_("(", (Star(UNREAD),)) and isinstance(statement.value, Atom):
            changed[id(statement)] = None
    return rewritten(body, changed, None) if changed else list(body)


def _read_alone(targets: Sequence_, counts: Counter[str]) -> Sequence_:
    parts: list[Any] = []
    for part in targets.items:
        if isinstance(part, Sequence_):
            inside = _read_alone(part, counts)
            parts.append(UNREAD if all(map(_is_unread, inside.items)) else inside)
        elif isinstance(part, Atom):
            parts.append(part if counts[part.text] else UNREAD)
        else:
            parts.append(part)
    last = max((i for i, part in enumerate(parts) if not _is_unread(part)), default=-1)
    starred_before = any(isinstance(part, Star) for part in parts[: last + 1])
    if len(parts) - last > 2 and not starred_before:
        parts[last + 1 :] = [Star(UNREAD)]
    return Sequence_(targets.bracket, tuple(parts))


def _is_unread(target: Any) -> bool:
    return target in (UNREAD, Star(UNREAD))
