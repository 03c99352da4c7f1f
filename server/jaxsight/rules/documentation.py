"""The pages of rules, as `jaxsight explain` and the documentation show them."""

from __future__ import annotations

from jaxsight import reading
from jaxsight.rules import FIX_MODULES, RULES, file_of
from jaxsight.rules.rule import Rule


def page(rule: Rule) -> str:
    """Return a rule's page in Markdown, with a line on its severity below the title."""
    title, _, text = reading.text(file_of(rule)).partition("\n")
    facts = [f"Severity: {rule.severity}"]
    if not rule.on:
        facts.append("off by default")
    if rule.code in FIX_MODULES:
        facts.append("has a fix")
    return f"{title}\n\n*{' · '.join(facts)}*\n{text}"


def table() -> str:
    """Return all rules as a table in Markdown, linked to their pages beside it."""
    rows = (
        f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.summary} | {_mark(rule)} |"
        for rule in RULES.values()
    )
    return "\n".join(("| code | name | | |", "|---|---|---|---|", *rows))


def _mark(rule: Rule) -> str:
    fix = "fix" if rule.code in FIX_MODULES else ""
    return ", ".join(word for word in (fix, "" if rule.on else "off by default") if word)
