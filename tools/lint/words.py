"""What users read has no phrases that a native speaker would not write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from jaxsight.features.fixes.verifier import FIXES
from jaxsight.rules import RULES
from jaxsight.rules.rule import Rule
from jaxsight.settings.schema import SCHEMA
from tools.lint.checkout import PACKAGE, Checkout, Module, Offender, line_at

FORBIDDEN = {
    r"\bgoes round\b|\brounds\b|\b(?:a|each|every|per|one) round\b": "iterations",
    r"\bmade anew\b|\banew\b": "re-created, again",
    r"\btold of\b|\bis told\b|\bare told\b": "reported, shown",
    r"\bleaves? (?:it |them )?out\b|\bleft out\b": "suppress, ignore, skip",
    r"codes or (?:their )?beginnings": "rules or rule prefixes",
    r"lies in the executable": "is embedded in the executable",
    r"for its specification": "ahead of time (device not present)",
    r"(?<!here )\bis no (?!longer\b|more\b|such\b|data\b|model\b)\w+": "is not a valid …",
    r"\bthere is no such\b": "unknown …",
    r"\bbehind the (?:end|name|head)\b": "after",
}
"""Phrases, and what to write instead."""
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield each of these phrases in pages, summaries, descriptions and strings for users."""
    for path in checkout.files(f"{PACKAGE}/rules/*/page.md"):
        text = _CODE.sub(lambda code: "\n" * code[0].count("\n"), checkout.text(path))
        yield from phrases(path, text)
    for path in [
        *checkout.files(f"{PACKAGE}/rules/*/rule.py"),
        *checkout.files(f"{PACKAGE}/cli/**/*.py"),
    ]:
        for line, text in strings(checkout.module(path)):
            yield from phrases(path, text, line)
    yield from of_tables(RULES.values(), {name: each.description for name, each in SCHEMA.items()})


def of_tables(known: Iterable[Rule], settings: Mapping[str, str]) -> Iterator[Offender]:
    """Yield the same in summaries of rules and fixes, and in descriptions of settings."""
    for rule in known:
        path = path_of(rule)
        if len(rule.summary) > 80:
            yield Offender(path, 1, f"summary of {len(rule.summary)} characters, more than 80")
        if rule.summary[0].islower():
            yield Offender(path, 1, "summary begins with a small letter")
        yield from phrases(path, rule.summary)
        if rule.code in FIXES:
            yield from phrases(path, FIXES[rule.code].summary)
    for name, description in settings.items():
        for found in phrases(f"{PACKAGE}/settings/schema.py", description):
            yield found._replace(line=1, message=f"setting `{name}`: {found.message}")


def path_of(rule: Rule) -> str:
    """Return the path of a rule's module."""
    return f"{PACKAGE}/rules/{rule.folder}/rule.py"


def phrases(path: str, text: str, line: int = 1) -> Iterator[Offender]:
    """Yield each phrase in a text that begins on a line of a file."""
    for pattern, better in FORBIDDEN.items():
        for found in re.finditer(pattern, text):
            where = line + line_at(text, found.start()) - 1
            yield Offender(path, where, f"`{found[0]}`: write `{better}`")


def strings(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the strings that are not docstrings; f-strings with `…` for values."""
    constants = module.nodes(ast.Constant)
    docstrings = {node.value for node in module.nodes(ast.Expr)}
    joined = module.nodes(ast.JoinedStr)
    inside = {part for node in joined for part in node.values}
    for node in joined:
        yield (
            node.lineno,
            "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
            ),
        )
    for constant in constants:
        if isinstance(constant.value, str) and constant not in docstrings | inside:
            yield constant.lineno, constant.value
