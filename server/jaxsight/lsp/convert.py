"""Convert the engine's answers to lsprotocol types.

All functions are pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lsprotocol import types

from jaxsight.features.model import Completion, Hint
from jaxsight.lsp.documents.text import DocumentWindow
from jaxsight.rules.finding import Severity
from jaxsight.source.text import Edit, Range
from jaxsight.text.inert import one_line, visible

SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}

_LINK = re.compile(r"\](?=\(\s*[a-z][\w+.-]*:)", re.IGNORECASE)
_ICON = re.compile(r"\$\(")

_COMPLETION_KINDS = {
    "argument": types.CompletionItemKind.Variable,
    "dtype": types.CompletionItemKind.TypeParameter,
    "size": types.CompletionItemKind.Constant,
    "keyword": types.CompletionItemKind.Keyword,
}


def markup(text: str, *, markdown: bool) -> types.MarkupContent:
    """Convert the engine's Markdown to the format that the client supports."""
    if markdown:
        return types.MarkupContent(kind=types.MarkupKind.Markdown, value=visible(text))
    # Most clients show Markdown, and importing a parser takes 40 ms.
    from jaxsight.text.markdown_reader import plain

    return types.MarkupContent(kind=types.MarkupKind.PlainText, value=visible(plain(text)))


def notice(text: str) -> str:
    """Return text for a message, a lens, a progress bar or a log, on one line.

    VS Code runs commands of links in messages and draws `$(icon)` in lenses, so both are defused.
    """
    return _ICON.sub("$ (", _LINK.sub("] ", one_line(text)))


def inert(values: Mapping[str, object]) -> dict[str, object]:
    """Return values whose texts, which may be from a workspace, are on one line and inert."""
    return {
        name: notice(value) if isinstance(value, str) else value for name, value in values.items()
    }


def text_edit(view: DocumentWindow, edit: Edit) -> types.TextEdit:
    """Convert an edit."""
    return types.TextEdit(range=view.to_range(edit.range), new_text=edit.text)


def unconverted(range: Range) -> types.Range:
    """Return a range of whole lines, whose columns are the same in all units."""
    return types.Range(*(types.Position(at.line, at.column) for at in (range.start, range.end)))


def inlay_hint(view: DocumentWindow, hint: Hint) -> types.InlayHint:
    """Convert a hint, without its tooltip."""
    text = one_line(hint.label)
    label: str | list[types.InlayHintLabelPart] = text
    if hint.command:
        command = types.Command(text, hint.command, arguments=list(hint.arguments))
        label = [types.InlayHintLabelPart(text, command=command)]
    return types.InlayHint(
        position=view.to_position(hint.range.end),
        label=label,
        kind=types.InlayHintKind.Type,
        padding_left=not hint.attached,
    )


def label_text(hint: types.InlayHint) -> str:
    """Return the text of a hint's label."""
    label = hint.label
    return label if isinstance(label, str) else "".join(part.value for part in label)


def completion_item(
    view: DocumentWindow, completion: Completion, order: int
) -> types.CompletionItem:
    """Convert a proposal; `order` is its index in the engine's list."""
    return types.CompletionItem(
        label=one_line(completion.label),
        kind=_COMPLETION_KINDS.get(completion.kind, types.CompletionItemKind.Value),
        detail=one_line(completion.detail) or None,
        sort_text=f"{order:04}",
        filter_text=completion.edit.text.strip() or completion.label,
        text_edit=text_edit(view, completion.edit),
    )
