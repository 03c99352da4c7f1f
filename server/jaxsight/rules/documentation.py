"""The pages of rules, as `jaxsight explain` and the documentation show them."""

from __future__ import annotations

from collections.abc import Mapping

from jaxsight.files import reading
from jaxsight.rules import RULES, file_of
from jaxsight.rules.rule import Rule


def page(rule: Rule) -> str:
    """Return a rule's page in Markdown, with a line on its severity below the title."""
    title, _, text = reading.text(file_of(rule)).partition("\n")
    facts = [f"Severity: {rule.severity}"]
    if not rule.on:
        facts.append("off by default")
    if rule.remedy is not None:
        facts.append("has a fix")
    return f"{title}\n\n*{' · '.join(facts)}*\n{text}"


GROUPS = {
    "JX1": "Constants",
    "JX2": "Kernels, fusion and loops",
    "JX3": "Types and recompilation",
    "JX4": "Errors, derivatives and memory",
    "JX5": "Contracts",
    "JX9": "jaxsight itself: settings, example inputs, comments, imports",
}
"""What the rules of a hundred codes are about, by their prefix."""


def table() -> str:
    """Return all rules in tables in Markdown, one for each group, linked to their pages."""
    return "\n\n".join(
        f"### {prefix}xx: {about}\n\n{_rows(prefix)}" for prefix, about in GROUPS.items()
    )


def _rows(prefix: str) -> str:
    rows = ["| code | name | | looks at | |", "|---|---|---|---|---|"]
    for code, rule in RULES.items():
        if not code.startswith(prefix):
            continue
        looks_at = {
            "source": rule.in_module,
            "exceptions": rule.explain,
            "program": rule.in_program,
            "kernels": rule.in_kernels,
        }
        marks = {"fix": rule.remedy is not None, "off by default": not rule.on}
        about = f"| [{code}]({code}.md) | {rule.name} | {rule.summary} |"
        rows.append(f"{about} {_listed(looks_at)} | {_listed(marks)} |")
    return "\n".join(rows)


def _listed(words: Mapping[str, object]) -> str:
    """Return the words that have something."""
    return ", ".join(word for word, found in words.items() if found)
