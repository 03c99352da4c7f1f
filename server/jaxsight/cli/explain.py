"""Explain a rule, or list all rules: `jaxsight explain [RULE]`."""

from __future__ import annotations

from jaxsight.cli import printing
from jaxsight.cli.errors import CommandError
from jaxsight.cli.printing import Printer, Table, cells, print_json
from jaxsight.rules import RULES, rule_of
from jaxsight.rules.documentation import page
from jaxsight.rules.rule import Rule


def explain(name: str | None, *, as_json: bool) -> int:
    """Print the page of a rule, given by its code or name, or the table of all.

    Raises:
        CommandError: the rule does not exist.
    """
    if name is None:
        return _all(as_json)
    rule = rule_of(name)
    if rule is None:
        raise CommandError(f"unknown rule {name}; run `jaxsight explain` for a list")
    text = page(rule)
    if as_json:
        print_json({**_row(rule), "page": text})
    else:
        printing.page(text)
    return 0


def _row(rule: Rule) -> dict[str, object]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "default": rule.on,
        "summary": rule.summary,
        "url": rule.url,
    }


def _all(as_json: bool) -> int:
    if as_json:
        print_json([_row(rule) for rule in RULES.values()])
        return 0
    table = Table("code", "name", "severity", "", box=None, pad_edge=False)
    for rule in RULES.values():
        off = "" if rule.on else " (off by default)"
        table.add_row(*cells(rule.code, rule.name, rule.severity, f"{rule.summary}{off}"))
    Printer(wrap=True).print(table)
    return 0
