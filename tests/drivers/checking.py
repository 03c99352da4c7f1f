"""The check that all tests of this folder make."""

from __future__ import annotations

import ast
from pathlib import Path

from jaxsight.session import Session
from tests.drivers import observed

_WITHOUT_JAX = frozenset({"main", "__init__"})
"""They take no arrays that anybody looks for."""


async def check(kind: str, name: str, project: tuple[Session, Path]) -> None:
    """Compare what is shown of a program's functions with a real run of it."""
    session, root = project
    path = observed.written(kind, root)[name]
    text = path.read_text()
    calls = observed.really_called(kind, root)[str(path)]
    session.open(str(path), text)
    await session.background.settle(str(path), patience=240)
    wrong = {}
    for function, node in observed.functions(ast.parse(text)):
        if node.name in _WITHOUT_JAX or function not in calls:
            continue
        said = await observed.shown(session, str(path), node)
        if not any(observed.agrees(said, call) for call in calls[function]):
            wrong[function] = said, calls[function]
    session.close(str(path))
    assert wrong == {}
