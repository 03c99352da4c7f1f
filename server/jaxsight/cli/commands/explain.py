"""Explain a rule, a primitive or an operation, or list all rules: `jaxsight explain [NAME]`."""

from __future__ import annotations

import dataclasses
import difflib

from jaxsight.cli.errors import CommandError, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.output.printing import Printer, Table, cells, print_json, print_page
from jaxsight.cli.parameters import AsJson
from jaxsight.files.bytecode import cached_bytecode, file_for
from jaxsight.files.reading import UnreadableError
from jaxsight.rules import RULES, rule_of
from jaxsight.rules.documentation import page
from jaxsight.rules.rule import Rule


@command
def explain(name: str | None = None, *, as_json: AsJson = False) -> int:
    """Explain a rule, a primitive or an operation, or list all rules.

    Args:
        name (NAME): Rule, by code (JX102) or name, a primitive of JAX (dot_general), or an
            operation of StableHLO or HLO (fusion). [default: list all]
    """
    if name is None:
        _print_all(as_json)
        return 0
    rule = rule_of(name)
    if rule is None:
        _print_operations(name, as_json)
        return 0
    with failing_on(UnreadableError, about=f"{rule.code} ({rule.name}) has no page: "):
        text = page(rule)
    if as_json:
        print_json({**_record(rule), "page": text})
    else:
        print_page(text)
    return 0


def _print_operations(name: str, as_json: bool) -> None:
    """Print what has the name of a primitive or operation.

    Raises:
        CommandError: nothing has it.
    """
    # Explaining a rule does not wait for it (40 ms).
    from jaxsight.features.explained_operations.table import named, similar

    found = named(name)
    if not found:
        names = [near for rule in RULES.values() for near in (rule.code, rule.name)]
        near = difflib.get_close_matches(name, names, n=1) + similar(name)
        advice = f"did you mean {', '.join(near)}?" if near else "`jaxsight explain` lists rules"
        raise CommandError(f"unknown rule or operation {name}; {advice}")
    if as_json:
        print_json([dataclasses.asdict(operation) for operation in found])
        return
    printer = Printer(wrap=True)
    for operation in found:
        title = f"{operation.name} ({operation.language})"
        printer.print(f"{title}: {operation.explanation}", operation.link, sep="\n  ")


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
