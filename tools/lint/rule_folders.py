"""A rule is a folder: complete, found by its name, and nothing else has to know it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from jaxsight.rules import RULES
from jaxsight.rules.rule import Rule
from tools.lint.checkout import PACKAGE, Checkout, Offender

_FOLDERS = f"{PACKAGE}/rules"
_LAYER = "jaxsight.rules"
_SEVERITIES = ("error", "warning", "information", "hint")
_IMPORTED = re.compile(r"jaxsight\.rules\.(jx\d+)_")


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield what is wrong with folders of rules, and what else names a rule."""
    yield from of_rules(RULES.values())
    yield from of_folders(checkout)
    yield from of_others(checkout, RULES)
    yield from of_imports(checkout)


def of_rules(known: Iterable[Rule]) -> Iterator[Offender]:
    """Yield rules whose folder has another name, and codes and names that two rules have."""
    known = list(known)
    for rule in known:
        path = f"{_FOLDERS}/{rule.folder}/rule.py"
        if rule.severity not in _SEVERITIES:
            yield Offender(path, 1, f"unknown severity `{rule.severity}`")
        if not rule.summary.endswith("."):
            yield Offender(path, 1, "summary ends without a full stop")
    for words in ([rule.code for rule in known], [rule.name for rule in known]):
        for word, count in Counter(words).items():
            if count > 1:
                yield Offender(_FOLDERS, 1, f"{count} rules are called `{word}`")


def of_folders(checkout: Checkout) -> Iterator[Offender]:
    """Yield folders without a rule or a page."""
    names = {rule.folder for rule in RULES.values()}
    folders = {PurePosixPath(path).parts[3] for path in checkout.files(f"{_FOLDERS}/jx*/**/*")}
    for folder in sorted(folders - {"__pycache__"}):
        path = f"{_FOLDERS}/{folder}"
        if not checkout.files(f"{path}/*.*"):
            continue  # only bytecode, of a rule that is gone
        if folder not in names:
            yield Offender(path, 1, "a folder without a rule")
        if not checkout.exists(f"{path}/page.md"):
            yield Offender(path, 1, "a rule without `page.md`")


def of_others(checkout: Checkout, known: Mapping[str, Rule]) -> Iterator[Offender]:
    """Yield modules that name a rule of another folder.

    The engine names only what it reports itself; a rule, the rule that it is silent for.
    """
    for module in checkout.modules:
        imported = {code.upper() for code in _IMPORTED.findall(module.text)}
        constants = {
            node.value: node.lineno
            for node in module.nodes(ast.Constant)
            if isinstance(node.value, str)
        }
        own = known.get(PurePosixPath(module.path).parent.name[:5].upper())
        allowed = {own.code, own.unless} if own is not None else set()
        for code in sorted(known.keys() & {*constants, *imported} - allowed):
            if not known[code].is_own:
                message = f"names {code}, a rule of another folder"
                yield Offender(module.path, constants.get(code, 1), message)


def of_imports(checkout: Checkout) -> Iterator[Offender]:
    """Yield what rules import of the layers above them.

    The contracts of import-linter do not see folders without an `__init__.py`.
    """
    contracts = tomllib.loads(checkout.text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers: list[str] = contracts[0]["layers"]
    above = re.compile("|".join(re.split(r" [|:] ", " | ".join(layers[: layers.index(_LAYER)]))))
    for module in checkout.modules:
        if PurePosixPath(module.path).match(f"{_FOLDERS}/jx*/*.py"):
            for line, imported in module.imports():
                if above.match(imported):
                    yield Offender(module.path, line, f"imports `{imported}`, a layer above rules")
