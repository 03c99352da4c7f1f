"""JX470: write the name, the call or the keyword that newer releases have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx470_outdated_api.rule import Outdated
from jaxsight.rules.jx470_outdated_api.table import (
    Replacement,
    configured,
    row_of,
    rows,
    rows_of_call,
)
from jaxsight.source.text import Edit

_NOT_IMPORTED = ("jax.extend", "jax.example_libraries", "jax.experimental", "jax.scipy", "jax.ffi")
"""Modules that `import jax` alone does not import."""


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the changed import with the calls that depend on it, the attribute or the call.

    Where the installed release does not have the old name, or the function calls back into Python,
    nothing is run to compare: the change is offered if the function can be traced then.
    """
    found = context.finding.data
    if not isinstance(found, Outdated) or not found.row.new:
        return
    edits = _edits(context, found.row)
    if edits:
        is_same = not found.is_missing and not found.row.calls_back
        title = f"Use {found.row.shown_new}"
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


REMEDY = Remedy("the name of newer releases", candidates)
