"""Diagnostic rules, one folder each, found by their folders' names.

The folder `jx207_short_loop` is the rule JX207, called `short-loop`:

* `rule.py` declares `RULE` and finds: pure functions over plain data, without the engine;
* `fix.py`, where there is one, declares `REMEDY`: edits of the text that the engine proves;
* `page.md` is the page that `jaxsight explain` and the documentation show, and whose examples
  the tests execute;
* `cases.md` holds programs that it reports, near misses, and the differences that its fix makes.

`program/` and `text/` hold what several rules share to read traced programs and modules, `fixing/`
what their fixes share.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from jaxsight.rules.rule import Rule

_FOLDERS = {
    module.name: Path(__file__).with_name(module.name)
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name)
    if module.ispkg and module.name.startswith("jx")
}


def _declared(folder: str) -> Rule:
    declared = import_module(f"{__name__}.{folder}.rule").RULE
    assert isinstance(declared, Rule)
    return declared


_BY_FOLDER: Mapping[str, Rule] = {folder: _declared(folder) for folder in _FOLDERS}

RULES: Mapping[str, Rule] = {rule.code: rule for rule in _BY_FOLDER.values()}
"""All rules by code, in the order of their codes."""

NAMES: Mapping[str, Rule] = {rule.name: rule for rule in RULES.values()}
"""All rules by name."""

FIX_MODULES: Mapping[str, str] = {
    rule.code: f"{__name__}.{folder}.fix"
    for folder, rule in _BY_FOLDER.items()
    if (_FOLDERS[folder] / "fix.py").is_file()
}
"""By code the module that declares the rule's fix, for rules that have one."""


def rule_of(text: str) -> Rule | None:
    """Return the rule of a code (`JX207`) or name (`short-loop`), in any case."""
    return RULES.get(text.upper()) or NAMES.get(text.lower())


def file_of(rule: Rule) -> Path:
    """Return the file of a rule's page."""
    folder = next(folder for folder, declared in _BY_FOLDER.items() if declared is rule)
    return _FOLDERS[folder] / "page.md"
