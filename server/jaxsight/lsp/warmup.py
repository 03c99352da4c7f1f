"""Generate the converter's code before it is needed.

cattrs writes the code that converts a class to JSON and back when it first converts an instance:
some 75 ms for the first answer with hints.
After `initialized`, while the tracer starts anyway, each kind of message is converted once.
"""

from __future__ import annotations

import asyncio
import json
import linecache
from typing import TYPE_CHECKING, Any

from lsprotocol import types

if TYPE_CHECKING:
    from cattrs import Converter
    from pygls.protocol import LanguageServerProtocol

_URI = "file:///warm.py"
_START = {"line": 0, "character": 0}
_RANGE = {"start": _START, "end": _START}
_DOCUMENT = {"uri": _URI}

_REQUESTS: dict[str, dict[str, object]] = {
    types.TEXT_DOCUMENT_DID_OPEN: {
        "textDocument": {**_DOCUMENT, "languageId": "python", "version": 0, "text": ""}
    },
    types.TEXT_DOCUMENT_DID_CHANGE: {
        "textDocument": {**_DOCUMENT, "version": 1},
        "contentChanges": [{"range": _RANGE, "text": ""}],
    },
    types.TEXT_DOCUMENT_HOVER: {"textDocument": _DOCUMENT, "position": _START},
    types.TEXT_DOCUMENT_INLAY_HINT: {"textDocument": _DOCUMENT, "range": _RANGE},
    types.TEXT_DOCUMENT_DIAGNOSTIC: {"textDocument": _DOCUMENT},
    types.TEXT_DOCUMENT_CODE_LENS: {"textDocument": _DOCUMENT},
    types.TEXT_DOCUMENT_CODE_ACTION: {
        "textDocument": _DOCUMENT,
        "range": _RANGE,
        "context": {"diagnostics": []},
    },
    types.TEXT_DOCUMENT_COMPLETION: {"textDocument": _DOCUMENT, "position": _START},
}


def _answers() -> dict[str, object]:
    start = types.Position(line=0, character=0)
    here = types.Range(start=start, end=start)
    text = types.MarkupContent(kind=types.MarkupKind.Markdown, value="")
    edit = types.TextEdit(range=here, new_text="")
    command = types.Command(title="", command="", arguments=[""])
    diagnostic = types.Diagnostic(
        range=here, message="", code="", severity=types.DiagnosticSeverity.Error
    )
    return {
        types.TEXT_DOCUMENT_HOVER: types.Hover(contents=text, range=here),
        types.TEXT_DOCUMENT_INLAY_HINT: [
            types.InlayHint(position=start, label="", tooltip=text, kind=types.InlayHintKind.Type)
        ],
        types.TEXT_DOCUMENT_DIAGNOSTIC: types.RelatedFullDocumentDiagnosticReport(
            items=[diagnostic], result_id=""
        ),
        types.TEXT_DOCUMENT_CODE_LENS: [types.CodeLens(range=here, command=command)],
        types.TEXT_DOCUMENT_CODE_ACTION: [
            types.CodeAction(title="", kind="", edit=types.WorkspaceEdit(changes={_URI: [edit]}))
        ],
        types.TEXT_DOCUMENT_COMPLETION: types.CompletionList(
            is_incomplete=False,
            items=[types.CompletionItem(label="", documentation=text, text_edit=edit)],
        ),
    }


async def warm_converter(protocol: LanguageServerProtocol, converter: Converter) -> None:
    """Convert one message of each kind, and yield to other tasks in between."""
    for method, params in _REQUESTS.items():
        await asyncio.sleep(0)
        message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
        if types.METHOD_TO_TYPES[method][1] is not None:
            message["id"] = 0
        protocol.structure_message(message)
    for method, answer in _answers().items():
        await asyncio.sleep(0)
        response: Any = types.METHOD_TO_TYPES[method][1]
        json.dumps(converter.unstructure(response(id=0, result=answer)))
    linecache.clearcache()  # attrs and cattrs put 2 MiB of generated methods there
