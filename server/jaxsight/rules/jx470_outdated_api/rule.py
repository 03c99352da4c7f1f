"""JX470: a name or a keyword that JAX or one of its libraries has renamed, moved or removed.

Found in the text, so that it is known before the release that removes it is installed; a trace that
failed for it is explained in the same words. What changed is in `table.py`.
"""

# Longer than most rules: imports, names, keywords and calls are found and rewritten apart.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.jx470_outdated_api.table import (
    Replacement,
    configured,
    pattern_of_names,
    row_of,
    rows,
    rows_of_call,
)
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import ModuleViolation, NodeViolation, Rule, SeverityName, Violation
from jaxsight.rules.text.expressions import dotted, name_of
from jaxsight.rules.text.statements import Imports, Statement, full_name, imports_of
from jaxsight.source.text import Edit
from jaxsight.text.names import bound_by

RULE = Rule(
    __name__,
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
def explain(error: RaisedError) -> Violation | None:
    """Explain that the installed release does not have a name or a keyword."""
    text = error.message.strip()
    missing: list[Replacement] = []
    call = error.call
    if error.is_a("AttributeError", "ImportError", "ModuleNotFoundError"):
        matches = filter(None, (pattern.match(text) for pattern in _MISSING))
        names = (f"{each['module']}.{each.groupdict().get('name', '')}" for each in matches)
        missing = [row for name in names if (row := row_of(name)) is not None][:1]
    elif error.is_a("TypeError") and call is not None:
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
    new = " and ".join(row.display_new for row in outdated if row.new)
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


# The fix: write the name, the call or the keyword that newer releases have.

_NOT_IMPORTED = ("jax.extend", "jax.example_libraries", "jax.experimental", "jax.scipy", "jax.ffi")
"""Modules that `import jax` alone does not import."""


@RULE.fixes("the name of newer releases")
def candidates(context: FixContext, found: Outdated) -> Iterator[Candidate]:
    """Yield the changed import with the calls that depend on it, the attribute or the call.

    Where the installed release does not have the old name, or the function calls back into Python,
    nothing is run to compare: the change is offered if the function can be traced then.
    """
    if not found.row.new:
        return
    edits = _edits(context, found.row)
    if edits:
        is_same = not found.is_missing and not found.row.calls_back
        title = f"Use {found.row.display_new}"
        yield Candidate(title, tuple(edits), safe=is_same, same=is_same)


def _edits(context: FixContext, row: Replacement) -> list[Edit]:
    """Return the edits for the use that a finding is about; none if there is no clear change."""
    for statement in ast.walk(context.tree):
        if isinstance(statement, ast.Import | ast.ImportFrom) and any(
            context.range(each) == context.finding.range for each in (statement, *statement.names)
        ):
            return _of_import(context, statement)
    if row.keyword:
        called = next(context.find(ast.Call), None)
        return _keywords(context, called) if called is not None else []
    node = next(context.find(ast.Attribute), None)
    if node is None:
        return []
    call = context.parents.get(node)
    name, imports = _spelled(context, _callee(row))
    calls = [call] if isinstance(call, ast.Call) and node in (call.func, *call.args[:1]) else []
    rewritten = [
        edit
        for each in calls
        if each.func is node
        for edit in _rewritten(context, each, row, name, imports)
    ]
    if rewritten or row.parameters is not None:
        return rewritten
    renamed = [edit for each in calls for edit in _keywords(context, each)]
    return [context.replace(node, name), *renamed, *imports]


def _of_import(context: FixContext, node: ast.Import | ast.ImportFrom) -> list[Edit]:
    """Return the edits of an import, for all of its names that have others, and of their calls."""
    kept: list[ast.alias] = []
    lines: list[str] = []
    edits: list[Edit] = []
    for alias in node.names:
        old = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        row = row_of(old)
        if row is None or not (line := _new_import(node, alias, row, old)):
            kept.append(alias)
            continue
        calls = _of_calls(context, row, old, alias.asname or alias.name)
        if calls is None:
            return []
        lines.append(line)
        edits += calls
    if kept:
        module = node.module if isinstance(node, ast.ImportFrom) else ""
        rest = ast.ImportFrom(module, kept, 0) if module else ast.Import(kept)
        lines.insert(0, ast.unparse(rest))
    text = f"\n{context.indent(node)}".join(lines)
    return [context.replace(node, text), *edits] if len(kept) < len(node.names) else []


def _new_import(
    node: ast.Import | ast.ImportFrom, alias: ast.alias, row: Replacement, old: str
) -> str:
    """Return the import of the new name that binds the same name; empty if there is none."""
    new = f"{_callee(row)}{old.removeprefix(row.old)}"
    bound = alias.asname or alias.name
    if not re.fullmatch(r"\w+(\.\w+)+", new):
        return ""
    if isinstance(node, ast.Import):
        return f"import {new} as {bound}" if alias.asname else ""
    module, _, last = new.rpartition(".")
    return f"from {module} import {last}" + (f" as {bound}" if last != bound else "")


def _of_calls(context: FixContext, row: Replacement, old: str, bound: str) -> list[Edit] | None:
    """Return the edits of the calls of an imported function; `None` if one cannot be changed."""
    edits: list[Edit] = []
    for part in context.elsewhere():
        for call in ast.walk(part.tree):
            if not isinstance(call, ast.Call) or part.called(configured(call)) != old:
                continue
            rewritten = (
                _rewritten(part, call, row, bound, []) if call.func is configured(call) else []
            )
            if row.parameters is not None and not rewritten:
                return None
            edits += rewritten or _keywords(part, call)
    return edits


def _keywords(context: FixContext, call: ast.Call) -> list[Edit]:
    """Return the edits of all keywords of a call that have other names now."""
    return [
        context.replace(keyword, row.new if row.value else f"{row.new}={text}")
        for row, keyword in rows_of_call(context.called(configured(call)), call)
        if (text := context.text(keyword.value))
    ]


def _rewritten(
    context: FixContext, call: ast.Call, row: Replacement, name: str, imports: list[Edit]
) -> list[Edit]:
    """Return the edit that writes a call as the row with as many arguments says."""
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    forms = ((each, each.parameters) for each in rows()[row.old] if each.parameters is not None)
    form = next((each for each in forms if len(each[1]) == len(call.args)), None)
    if form is None or call.keywords or starred:
        return []
    callee = _callee(form[0])
    template = form[0].new.removeprefix(callee)
    texts = dict(zip(form[1], call.args, strict=True))

    def argument(match: re.Match[str]) -> str:
        alone = template[match.end() :][:1] in (",", ")", "]")
        node = texts[match[0]]
        return context.text(node) if alone else context.operand(node)

    words = "|".join(map(re.escape, texts))
    filled = (
        re.sub(rf"(?<![\w.\"])(?:{words})(?![\w=\"])", argument, template) if texts else template
    )
    return [context.replace(call, f"{name if callee else ''}{filled}"), *imports]


def _callee(row: Replacement) -> str:
    """Return the full name of what a row writes; empty for an expression of its parameters."""
    name = row.new.partition("(")[0]
    return name if row.keyword or name.startswith(f"{row.package}.") else ""


def _spelled(context: FixContext, name: str) -> tuple[str, list[Edit]]:
    """Return a full name as the module writes it, and the import that it needs."""
    module, _, last = name.rpartition(".")
    if name in context.imports:
        return context.imports[name], []
    if module in context.imports:
        return f"{context.imports[module]}.{last}", []
    root = name.partition(".")[0]
    is_there = root in context.imports and not module.startswith(_NOT_IMPORTED)
    edits = [] if is_there else list(context.imported(module))
    return f"{context.imports.get(root, root)}{name.removeprefix(root)}", edits
