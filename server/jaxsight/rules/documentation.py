"""The pages of rules, as `jaxsight explain` and the documentation show them."""

from __future__ import annotations

from jaxsight.files import reading
from jaxsight.rules import RULES, file_of
from jaxsight.rules.rule import Rule


def page(rule: Rule) -> str:
    """Return a rule's page in Markdown, with a line on its severity below the title."""
    title, _, text = reading.text(file_of(rule)).partition("\n")
    facts = [f"Severity: {rule.severity}"]
    if not rule.on:
        facts.append("off by default")
    if _has_fix(rule):
        facts.append("has a fix")
    return f"{title}\n\n*{' · '.join(facts)}*\n{text}"


def _has_fix(rule: Rule) -> bool:
    return file_of(rule).with_name("fix.py").is_file()


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
    rows = (
        f"| [{code}]({code}.md) | {rule.name} | {rule.summary} |"
        f" {_looks_at(rule)} | {_mark(rule)} |"
        for code, rule in RULES.items()
        if code.startswith(prefix)
    )
    return "\n".join(("| code | name | | looks at | |", "|---|---|---|---|---|", *rows))


def _looks_at(rule: Rule) -> str:
    sources = {
        "source": rule.in_text or rule.in_module,
        "exceptions": rule.explain,
        "program": rule.in_program,
        "kernels": rule.in_kernels,
    }
    return ", ".join(word for word, find in sources.items() if find is not None)


def _mark(rule: Rule) -> str:
    fix = "fix" if _has_fix(rule) else ""
    return ", ".join(word for word in (fix, "" if rule.on else "off by default") if word)
