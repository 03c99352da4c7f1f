"""JX470: a name or a keyword that JAX or one of its libraries has renamed, moved or removed.

Found in the text, so that it is known before the release that removes it is installed; a trace that
failed for it is explained in the same words. What changed is in `table.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.rules.failure_text import is_a
from jaxsight.rules.jx470_outdated_api.table import (
    Replacement,
    configured,
    pattern_of_names,
    row_of,
    rows,
    rows_of_call,
)
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import dotted, name_of, parsed_call
from jaxsight.rules.text.statements import Imports, Statement, full_name, imports_of
from jaxsight.rules.violation import ModuleViolation, NodeViolation, SeverityName, Violation
from jaxsight.text.names import bound_by
from jaxsight.wire.observations import Failure

RULE = Rule(
    "JX470",
    "outdated-api",
    "Name that newer releases of JAX, Optax, Flax or Equinox do not have.",
    severity="warning",
)

_GUARDS = re.compile(
    r"hasattr|getattr|callable|is None|version|find_spec|TYPE_CHECKING", re.IGNORECASE
)
"""A condition about the installed release: its branches are written for several."""
_CAUGHT = re.compile(r"ImportError|ModuleNotFoundError|AttributeError|Exception")

_MISSING = (
    re.compile(r"^module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'"),
    re.compile(r"^cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'"),
    re.compile(r"^No module named '(?P<module>[\w.]+)'"),
    re.compile(r"^(?P<module>(jax|optax|flax|equinox)(\.\w+)+) (was|is|has been) "),
)
_UNEXPECTED = re.compile(r"(?P<name>\w+)\(\) got an unexpected keyword argument '(?P<key>\w+)'")


@dataclass(frozen=True, slots=True)
class Outdated:
    """What a finding is about, for its fix."""

    row: Replacement
    is_missing: bool = False
    """Whether the installed release does not have it, so that nothing can be compared."""


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Violation | None:
    """Explain that the installed release does not have a name or a keyword."""
    text = failure.message.strip()
    missing: list[Replacement] = []
    call = parsed_call(expression)
    if is_a(failure, "AttributeError", "ImportError", "ModuleNotFoundError"):
        matches = filter(None, (pattern.match(text) for pattern in _MISSING))
        names = (f"{each['module']}.{each.groupdict().get('name', '')}" for each in matches)
        missing = [row for name in names if (row := row_of(name)) is not None][:1]
    elif is_a(failure, "TypeError") and call is not None:
        unexpected = _UNEXPECTED.search(text)
        called = unexpected["name"] if unexpected and unexpected["name"] == name_of(call) else ""
        of_name = (name for name in rows() if name.rpartition(".")[2] == called)
        missing = [row for name in of_name for row, _ in rows_of_call(name, call)]
    if not missing:
        return None
    message, help, notes = _words(missing)
    data = Outdated(missing[0], is_missing=True)
    return Violation(message, help=help, notes=notes, data=data, severity="error")


def _words(outdated: Sequence[Replacement]) -> tuple[str, str, tuple[str, ...]]:
    """Return the message, the help and the notes for a row, or for those of a call's keywords."""
    first = outdated[0]
    new = " and ".join(row.shown_new for row in outdated if row.new)
    return first.message, f"use {new}" if new else first.help, first.notes


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield imports, names and keywords that newer releases do not have.

    Code that asks for the release, or catches the error of another one, knows already.
    """
    names = pattern_of_names()
    named = [number for number, each in enumerate(statements) if names.search(each.text)]
    if not named:
        return
    imports = imports_of(statements)
    for number in named:
        for node, outdated in statements[number].read(uses, imports):
            message, help, notes = _words(outdated)
            severity: SeverityName = "warning" if outdated[0].gone else "information"
            data = Outdated(outdated[0])
            yield ModuleViolation(
                number,
                NodeViolation(node, message, help=help, notes=notes, data=data, severity=severity),
            )


Use = tuple[ast.expr | ast.alias, Sequence[Replacement]]


def uses(tree: ast.Module, imports: Imports) -> list[Use]:
    """Return the uses of rows in a statement: imports, attributes, and keywords of calls.

    A name that an import binds is reported at the import alone.
    """
    full = dict(imports)
    nodes = (node for node in ast.walk(tree) if not isinstance(node, ast.alias))
    local = {name for node in nodes for name in bound_by(node)}
    return list(_uses(tree, full, local))


def _uses(node: ast.AST, imports: Mapping[str, str], local: set[str]) -> Iterator[Use]:
    match node:
        case ast.Try(handlers=handlers) if any(
            each.type is None or _CAUGHT.search(ast.unparse(each.type)) for each in handlers
        ):
            return
        case ast.If(test=test) | ast.IfExp(test=test) if _GUARDS.search(ast.unparse(test)):
            return
        case ast.Import(names=aliases):
            for alias in aliases:
                if (row := row_of(alias.name)) is not None:
                    yield alias, [row]
        case ast.ImportFrom(module=str(module), level=0, names=aliases):
            for alias in aliases:
                if (row := row_of(f"{module}.{alias.name}")) is not None:
                    yield alias, [row]
        case ast.Attribute():
            name = _full(node, imports, local)
            row = next((row for row in rows().get(name, ()) if not row.keyword), None)
            if row is not None:
                yield node, [row]
        case ast.Call():
            name = _full(configured(node), imports, local)
            outdated = [row for row, _ in rows_of_call(name, node)]
            if outdated:
                yield node, outdated
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, imports, local)


def _full(node: ast.expr, imports: Mapping[str, str], local: set[str]) -> str:
    """Return the full name of what an import binds; empty for what the code itself binds."""
    name = dotted(node)
    root = name.partition(".")[0]
    return full_name(name, imports) if root in imports and root not in local else ""
