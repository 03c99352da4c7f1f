"""Diagnostic rules, one folder each, found by their folders' names.

The folder `jx207_short_loop` is the rule JX207, called `short-loop`:

* `rule.py` declares `RULE` and finds: pure functions over plain data, without the engine; where
  there is a fix, `REMEDY` proposes edits of the text, which the engine proves;
* `page.md` is the page that `jaxsight explain` and the documentation show, and whose examples
  the tests execute;
* `cases.md` holds programs that it reports, near misses, and the differences that its fix makes.

Those that the engine itself reports are in the table of `own.py`, and have no `rule.py`.

A rule must never run code, ask for a trace or change a text: it reads what the engine knows.

`program/` and `text/` hold what several rules share to read traced programs and modules, `fixing/`
what their fixes share.
"""

from __future__ import annotations

import functools
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from jaxsight.rules.rule import Rule

Value = TypeVar("Value")


class Table(Mapping[str, Value]):
    """A table that is made at the first look, because importing all rules takes 200 ms."""

    def __init__(self, make: Callable[[], Mapping[str, Value]]) -> None:
        self._make = make

    @functools.cached_property
    def _made(self) -> Mapping[str, Value]:
        return self._make()

    def __getitem__(self, key: str) -> Value:
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def _folder(name: str) -> Path:
    return Path(__file__).with_name(name)


@functools.cache
def _folders() -> list[str]:
    return sorted(
        module.name
        for module in pkgutil.iter_modules(__path__)
        if module.ispkg and module.name.startswith("jx")
    )


def _rule(folder: str) -> Rule:
    """Import the rule of a folder."""
    own: Mapping[str, Rule] = import_module(f"{__name__}.own").OWN
    code = folder.partition("_")[0].upper()
    rule: Rule = own[code] if code in own else import_module(f"{__name__}.{folder}.rule").RULE
    return rule


def module_of(rule: Rule) -> ModuleType | None:
    """Return the module that declares a rule; those of the table of `own.py` have none."""
    return sys.modules.get(f"{__name__}.{file_of(rule).parent.name}.rule")


def import_ahead() -> Iterator[None]:
    """Import all rules, one for each step."""
    for name in _folders():
        _rule(name)
        yield


_BY_FOLDER: Mapping[str, Rule] = Table(lambda: {name: _rule(name) for name in _folders()})

RULES: Mapping[str, Rule] = Table(lambda: {rule.code: rule for rule in _BY_FOLDER.values()})
"""All rules by code, in the order of their codes."""

NAMES: Mapping[str, Rule] = Table(lambda: {rule.name: rule for rule in RULES.values()})
"""All rules by name."""


def rule_of(text: str) -> Rule | None:
    """Return the rule of a code (`JX207`) or name (`short-loop`), in any case; import no other."""
    code, name = f"{text.lower()}_", f"_{text.lower().replace('-', '_')}"
    for folder in _folders():
        if folder.startswith(code) or folder.endswith(name):
            rule = _rule(folder)
            if text.upper() == rule.code or text.lower() == rule.name:
                return rule
    return None


def file_of(rule: Rule) -> Path:
    """Return the file of a rule's page."""
    folder = next(folder for folder in _folders() if folder.startswith(f"{rule.code.lower()}_"))
    return _folder(folder) / "page.md"
