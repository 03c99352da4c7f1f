"""Diagnostic rules, one folder each, found by their folders' names.

The folder `jx207_short_loop` is the rule JX207, called `short-loop`:

* `rule.py` declares `RULE` and finds: pure functions over plain data, without the engine; where
  there is a fix, `@RULE.fixes` proposes edits of the text, which the engine proves;
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
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


@functools.cache
def _folders() -> list[str]:
    """Return the names of the folders of rules that have a module."""
    return sorted(path.parent.name for path in Path(__file__).parent.glob("jx*/rule.py"))


def _rule(folder: str) -> Rule:
    """Import the rule of a folder."""
    rule: Rule = import_module(f"{__name__}.{folder}.rule").RULE
    return rule


def _own() -> Iterable[Rule]:
    """Return the rules that the engine itself reports."""
    own: Mapping[str, Rule] = import_module(f"{__name__}.own").OWN
    return own.values()


def preload() -> Iterator[None]:
    """Import all rules, one for each step."""
    for name in _folders():
        _rule(name)
        yield


def _all() -> Mapping[str, Rule]:
    rules = [*_own(), *map(_rule, _folders())]
    return {rule.code: rule for rule in sorted(rules, key=lambda rule: rule.code)}


RULES: Mapping[str, Rule] = Table(_all)
"""All rules by code, in the order of their codes."""

NAMES: Mapping[str, Rule] = Table(lambda: {rule.name: rule for rule in RULES.values()})
"""All rules by name."""


def rule_of(text: str) -> Rule | None:
    """Return the rule of a code (`JX207`) or name (`short-loop`), in any case; import no other."""
    code, name = f"{text.lower()}_", f"_{text.lower().replace('-', '_')}"
    folders = [each for each in _folders() if each.startswith(code) or each.endswith(name)]
    for rule in (*_own(), *map(_rule, folders)):
        if text.upper() == rule.code or text.lower() == rule.name:
            return rule
    return None


def file_of(rule: Rule) -> Path:
    """Return the file of a rule's page."""
    return Path(__file__).with_name(rule.folder) / "page.md"
