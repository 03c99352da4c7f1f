"""Explain a rule, or list all rules: `jaxsight explain [RULE]`."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from jaxsight.cli.errors import CommandError, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.options import AsJson
from jaxsight.cli.output.printing import Printer, Table, cells, print_json, print_page
from jaxsight.files.bytecode import cached_bytecode, file_for
from jaxsight.files.reading import UnreadableError
from jaxsight.rules import RULES, rule_of
from jaxsight.rules.documentation import page
from jaxsight.rules.rule import Rule

RuleName = Annotated[
    str | None,
    typer.Argument(
        metavar="RULE",
        help="Rule to explain, by code (JX102) or name.",
        show_default="list all",
    ),
]


@command
def explain(name: RuleName = None, as_json: AsJson = False) -> int:
    """Explain a rule, or list all rules."""
    if name is None:
        _print_all(as_json)
        return 0
    rule = rule_of(name)
    if rule is None:
        raise CommandError(f"unknown rule {name}; run `jaxsight explain` for a list")
    with failing_on(UnreadableError, about=f"{rule.code} ({rule.name}) has no page: "):
        text = page(rule)
    if as_json:
        print_json({**_record(rule), "page": text})
    else:
        print_page(text)
    return 0


def _record(rule: Rule) -> dict[str, object]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "default": rule.on,
        "summary": rule.summary,
        "url": rule.url,
    }


def _print_all(as_json: bool) -> None:
    with cached_bytecode(file_for("rules"), dataclasses):
        rules = list(RULES.values())
    if as_json:
        print_json([_record(rule) for rule in rules])
        return
    table = Table("code", "name", "severity", "", box=None, pad_edge=False)
    for rule in rules:
        off = "" if rule.on else " (off by default)"
        table.add_row(*cells(rule.code, rule.name, rule.severity, f"{rule.summary}{off}"))
    Printer(wrap=True).print(table)
