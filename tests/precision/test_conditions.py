"""Each condition of a rule is there for a program in its cases.

Rules of arithmetic are mostly conditions under which they stay silent. Each is replaced by `True`,
then by `False`: if the rule reports the same, no case needs it.
"""

from __future__ import annotations

import inspect
import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

from jaxsight import rules
from jaxsight.features.findings import run_rules
from jaxsight.features.named_function import view_of
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules import RULES
from jaxsight.rules.rule import Rule
from jaxsight.session import Session
from jaxsight.wire.messages.replies import Outlined
from tests.features.rendering import without_marks
from tests.quiet import QUIET
from tests.rules.cases import FOUND, NOT_FOUND, cases_of

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

ALWAYS, NEVER = (lambda *_, **__: True).__code__, (lambda *_, **__: False).__code__


def conditions_of(rule: Rule) -> Iterator[FunctionType]:
    """Yield the functions and methods of a rule's folder that return truth values."""
    folder = rules.file_of(rule).parent
    for module in pkgutil.iter_modules([str(folder)], f"jaxsight.rules.{folder.name}."):
        own = import_module(module.name)
        for holder in (own, *(cls for _, cls in inspect.getmembers(own, inspect.isclass))):
            for _, function in inspect.getmembers(holder, inspect.isfunction):
                is_own = function.__module__ == own.__name__
                if is_own and function.__annotations__.get("return") == "bool":
                    yield function


async def programs_of(rule: Rule, folder: Path) -> list[tuple[View, Outlined]]:
    """Trace all functions of a rule's cases."""
    cases = cases_of(rule)
    session = Session()
    settings = {"python": sys.executable, "target": cases.target}
    session.configure([str(folder)], {**QUIET, **settings})
    programs = []
    try:
        for block in (*cases.blocks(FOUND), *cases.blocks(NOT_FOUND)):
            path = str(folder / "case.py")
            session.open(path, without_marks(block.text))
            for function in session.engine.documents.functions(path):
                view = await view_of(session.engine, path, function)
                outlined = await session.engine.programs.outline(view) if view.is_traced else None
                if outlined is not None:
                    programs.append((view, outlined))
            session.close(path)
    finally:
        await session.aclose()
    return programs


@pytest.mark.parametrize("code", ["JX417", "JX420"])
async def test_cases_need_each_condition_of_a_rule(code: str, tmp_path: Path) -> None:
    programs = await programs_of(RULES[code], tmp_path)

    def found() -> list[tuple[str, int, str, str, tuple[str, ...]]]:
        return [
            (view.subject.name, each.range.start.line, each.message, each.help, each.notes)
            for view, outlined in programs
            for each in run_rules.of_program(view, outlined, [code])
        ]

    before, needless = found(), []
    for condition in {each.__qualname__: each for each in conditions_of(RULES[code])}.values():
        for constant in (ALWAYS, NEVER):
            kept, condition.__code__ = condition.__code__, constant
            try:
                if found() == before:
                    needless.append((condition.__qualname__, constant is ALWAYS))
            finally:
                condition.__code__ = kept
    assert before
    assert needless == []
