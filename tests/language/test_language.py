"""What users read is plain: messages are short clauses, and words are those of the glossary."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxsight import rules
from jaxsight.features.fixes.registry import FIXES
from jaxsight.rules import RULES
from jaxsight.settings.schema import SCHEMA

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "server" / "jaxsight"

LONGEST = 100
_MARK = re.compile(r"^ *#? *\^+ (?P<code>JX\d+)(?: \(\w+\))? (?P<message>.*)$", re.MULTILINE)
_QUOTES_JAX = frozenset({"JX400"})
"""Rules whose message is the exception's own."""

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
"""Phrases that a native speaker would not write, and what to write instead."""


def messages() -> Iterator[tuple[str, str, str]]:
    """Yield the file, code and message of each finding in the rules' cases and in the fixtures."""
    cases = sorted((SERVER / "rules").glob("*/cases.md"))
    fixtures = sorted((ROOT / "tests" / "fixtures").glob("*/*.py"))
    for file in (*cases, *fixtures):
        for mark in _MARK.finditer(file.read_text(encoding="utf-8")):
            yield file.parent.name, mark["code"], mark["message"]


def test_messages_are_short_clauses() -> None:
    wrong = [
        (file, code, len(message), message)
        for file, code, message in messages()
        if code not in _QUOTES_JAX and (len(message) > LONGEST or message.endswith("."))
    ]
    assert not wrong


def test_most_messages_are_read_at_a_glance() -> None:
    lengths = sorted({len(message) for _, code, message in messages() if code not in _QUOTES_JAX})
    assert statistics.median(lengths) <= 70
    assert lengths[int(0.95 * (len(lengths) - 1))] <= 95


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_summaries_fit_a_table(rule: rules.Rule) -> None:
    assert len(rule.summary) <= 80
    assert not rule.summary[0].islower()


def texts() -> Iterator[tuple[str, str]]:
    """Yield what users read, by where it is written."""
    for rule in RULES.values():
        yield f"{rule.code}: summary", rule.summary
        page = rules.file_of(rule).read_text(encoding="utf-8")
        yield (
            f"{rule.code}: page",
            re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL),
        )
        for name in ("rule.py", "fix.py"):
            file = rules.file_of(rule).with_name(name)
            if file.is_file():
                yield f"{rule.code}: {name}", "\n".join(_strings(file))
    for code, remedy in FIXES.items():
        yield f"{code}: fix", remedy.summary
    for name, setting in SCHEMA.items():
        yield f"setting {name}", setting.description
    for file in sorted((SERVER / "cli").rglob("*.py")):
        yield f"cli/{file.name}", "\n".join(_strings(file))


def _strings(file: Path) -> Iterator[str]:
    """Yield the strings of a module that are not docstrings; f-strings with `…` for values."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docstrings = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    inside = {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
            )
        elif isinstance(node, ast.Constant) and node not in docstrings | inside:
            yield from [node.value] if isinstance(node.value, str) else []


TEXTS = dict(texts())


@pytest.mark.parametrize("where", TEXTS)
def test_words_are_those_of_the_field(where: str) -> None:
    wrong = [
        f"{found.group()!r}: write {better!r}"
        for pattern, better in FORBIDDEN.items()
        for found in re.finditer(pattern, TEXTS[where])
    ]
    assert not wrong
