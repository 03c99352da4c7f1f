"""`textDocument/hover`: types and figures for the name under the cursor.

In printed programs, `programs/hover.py` answers.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from lsprotocol import types

from jaxsight.features.code_actions import SHOW
from jaxsight.features.explained_operations.table import explained_at
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import markup
from jaxsight.lsp.features.diagnostics import Diagnostics
from jaxsight.rules.finding import Finding
from jaxsight.text.markdown import prose
from jaxsight.timeline import mark

# `textDocument/hover` in printed programs: what the operation under the cursor does.


async def operation_hover(context: ClientContext, params: types.HoverParams) -> types.Hover | None:
    """Return the explanation of an operation in an open printed program, if there is one."""
    opened = await context.program(params.text_document.uri)
    if opened is None:
        return None
    offset = opened.offset(params.position)
    found = await opened.compute(lambda: explained_at(opened.program, offset))
    if found is None:
        return None
    operation, start, end = found
    return types.Hover(
        contents=markup(operation.markdown, markdown=context.client.hover_markdown),
        range=opened.range(start, end),
    )


_DOCUMENTS = {"jaxpr": "jaxpr", "kernels": "kernels", "hlo": "HLO", "pretty": "source"}
"""Kinds of documents that a function's hover leads to, with their titles."""
_SIGNED = "*jaxsight*"
"""The last line of a hover: editors show those of several servers one below another."""


async def answer(
    context: ClientContext, diagnostics: Diagnostics, params: types.HoverParams
) -> types.Hover | None:
    """Return the engine's hover, in the markup that the client supports.

    It explains the findings at the position, and operations of printed programs.
    """
    uri = params.text_document.uri
    view = context.documents.window_of(uri)
    if view is None:
        return await operation_hover(context, params)
    context.cursors.hovered(uri, params.position)
    position = view.position(params.position)
    hover = await context.session.hover(view.path, position)
    view = context.documents.window_of(uri)
    if view is None:
        return None
    mark("hover answered")
    parts = [hover.markdown] if hover is not None else []
    findings = diagnostics.published_at(view.path, position)
    parts += filter(None, (_explained(finding, "".join(parts)) for finding in findings))
    if not parts:
        return None
    if hover is not None and hover.function and context.client.knows_us:
        parts.append(_links(view.path, hover.function))
    return types.Hover(
        contents=markup("\n\n".join([*parts, _SIGNED]), markdown=context.client.hover_markdown),
        range=view.to_range(hover.range if hover is not None else findings[0].range),
    )


def _explained(finding: Finding, said: str) -> str:
    """Return a finding with its help and notes, as far as the hover has not said them yet."""
    details = [text for text in map(prose, finding.lines[1:]) if text not in said]
    head = f"**{finding.code}** {prose(finding.message)}"
    return "\n\n".join([head, *details]) if details else ""


def _links(path: str, function: str) -> str:
    """Return links that open a function's documents, for clients that run our commands in Markdown.

    All of their text is ours; the arguments are encoded.
    """
    links = (
        f"[{title}](command:{SHOW}?{quote(json.dumps([path, function, kind]), safe='')})"
        for kind, title in _DOCUMENTS.items()
    )
    return f"open: {' · '.join(links)}"
