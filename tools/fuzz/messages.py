"""Messages: each method's parameters, as clients send them, made wrong. Commands and the panel's
are a subject of their own."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from tools.fuzz.conversation import MODEL, MODEL_TEXT, Message, Talk, converse, numbers
from tools.fuzz.pieces import ODD_URIS, mutated_json, odd_value
from tools.fuzz.report import Report

_ids = numbers()


def _parameters(talk: Talk, uri: str) -> list[tuple[str, Any, bool]]:
    """Methods with parameters that are right, and whether each is a request."""
    at = {"line": 13, "character": 8}
    where = {"start": {"line": 0, "character": 0}, "end": {"line": 16, "character": 0}}
    document = {"uri": uri}
    versioned = {"uri": uri, "version": 2}
    item = {"uri": uri, "languageId": "python", "version": 1, "text": MODEL_TEXT}
    diagnostic = {
        "range": where,
        "message": "m",
        "code": "JX101",
        "source": "jaxsight",
        "data": {"path": uri},
    }
    context = {"diagnostics": [diagnostic], "only": ["quickfix"], "triggerKind": 1}
    action = {
        "title": "x",
        "kind": "refactor",
        "data": {"uri": uri, "path": talk.root.as_posix(), "pending": "attention", "version": 1},
    }
    hint = {"position": at, "label": "x", "data": {"key": 1}}
    made = f"jaxsight-jaxpr:{talk.root.as_posix()}/{MODEL}/attention.jaxpr"
    return [
        ("textDocument/didOpen", {"textDocument": item}, False),
        ("textDocument/didChange", {"textDocument": versioned, "contentChanges": [{"range": where,
        "text": "x = 1\n"}]}, False),
        ("textDocument/didChange", {"textDocument": versioned,
        "contentChanges": [{"text": MODEL_TEXT}]}, False),
        ("textDocument/didSave", {"textDocument": document, "text": "x"}, False),
        ("textDocument/didClose", {"textDocument": document}, False),
        ("textDocument/hover", {"textDocument": document, "position": at, "workDoneToken": 1},
        True),
        ("textDocument/completion", {"textDocument": document, "position": at,
        "context": {"triggerKind": 2, "triggerCharacter": "["}}, True),
        ("textDocument/inlayHint", {"textDocument": document, "range": where}, True),
        ("inlayHint/resolve", hint, True),
        ("textDocument/diagnostic", {"textDocument": document, "previousResultId": "1",
        "identifier": "x"}, True),
        ("textDocument/codeLens", {"textDocument": document}, True),
        ("textDocument/codeAction", {"textDocument": document, "range": where, "context": context},
        True),
        ("codeAction/resolve", action, True),
        ("workspace/textDocumentContent", {"uri": made}, True),
        ("jaxsight/textDocumentContent", {"uri": made}, True),
        ("jaxsight/textDocumentContentClosed", {"uri": made}, False),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]}, False),
        ("workspace/didChangeWorkspaceFolders", {"event": {"added": [{"uri": uri, "name": "n"}],
        "removed": []}}, False),
        ("jaxsight/interpreters", {"interpreters": {"file:///elsewhere": "/nonexistent/python"}},
        False),
        ("$/setTrace", {"value": "verbose"}, False),
        ("$/cancelRequest", {"id": 3}, False),
        ("window/workDoneProgress/cancel", {"token": "t"}, False),
        ("$/unknown", {"a": 1}, False),
        ("textDocument/unknown", {"a": 1}, True),
        ("textDocument/definition", {"textDocument": document, "position": at}, True),
    ]  # fmt: skip


def _settings(random: Random) -> Message:
    """Settings, few of which are right. They cost processes, so they are rare."""
    settings: dict[str, Any] = {
        "inlayHints": {"shapes": True, "kernels": False}, "target": "cpu",
        "timeouts": {"trace": 30}, "memoryLimit": 4096,
        "diagnostics": {"select": ["JX1"], "ignore": []}, "python": "", "variables": {"A": "1"},
    }  # fmt: skip
    params = mutated_json({"settings": {"jaxsight": settings}}, random, 3)
    return {"method": "workspace/didChangeConfiguration", "params": params}


def draw(random: Random, talk: Talk) -> list[Message]:
    uri = talk.uri(MODEL)
    messages = [_message("textDocument/didOpen", _parameters(talk, uri)[0][1], False)]
    for _ in range(9):
        if random.random() < 0.01:
            messages.append(_settings(random))
            continue
        target = random.choice((uri, uri, uri, random.choice(ODD_URIS)))
        method, params, request = random.choice(_parameters(talk, target))
        if random.random() < 0.8:
            params = mutated_json(params, random, random.choice((1, 1, 2, 4)))
        messages.append(_message(method, params, request))
    return messages


def _message(method: str, params: Any, request: bool) -> Message:
    return (
        {"id": next(_ids), "method": method, "params": params}
        if request
        else {"method": method, "params": params}
    )


COMMANDS = (
    "jaxsight.show",
    "jaxsight.chooseSet",
    "jaxsight.chooseTarget",
    "jaxsight.info",
    "jaxsight.unknown",
    "",
    "jaxsight.restart",
)
WORDS: Sequence[str] = (
    "attention", "sane", "", "attention.<locals>.x", "no", "decode", "jaxpr", "stablehlo", "lax",
    "pretty", "view", "grad", "vmap", "jvp", "inverse",
    "cuda:h100", "cuda:", "tpu:nothing", "untitled:x", "file:///", "(" * 500, "import os", "\n",
    "a b", "../..", "jit(", "grad(grad(attention))",
)  # fmt: skip


def draw_commands(random: Random, talk: Talk) -> list[Message]:
    uri = talk.uri(MODEL)
    item = {"uri": uri, "languageId": "python", "version": 1, "text": MODEL_TEXT}
    messages = [_message("textDocument/didOpen", {"textDocument": item}, False)]

    def word() -> Any:
        if random.random() < 0.3:
            return odd_value(random)
        return random.choice((uri, str(talk.root / MODEL), *WORDS))

    for _ in range(9):
        match random.randrange(4):
            case 0:
                position = {"line": random.randrange(20), "character": random.randrange(40)}
                asked = random.choice(
                    ({"uri": uri, "position": position}, {"uri": uri, "function": word()})
                )
                if random.random() < 0.6:
                    asked = mutated_json(asked, random)
                messages.append(_message("jaxsight/panel", asked, True))
            case 1:  # as an editor would
                kind = random.choice(("jaxpr", "lax", "pretty"))
                arguments = [uri, "attention", kind, *random.choice(((), ("grad",), (word(),)))]
                messages.append(_command("jaxsight.show", arguments))
            case _:
                # New processes take seconds.
                name = random.choice(COMMANDS if random.random() < 0.05 else COMMANDS[:-1])
                arguments = [word() for _ in range(random.randrange(6))]
                messages.append(
                    _command(name, arguments if random.random() < 0.95 else odd_value(random))
                )
    # The target that was chosen last is not for whoever comes next.
    messages.append(_command("jaxsight.chooseTarget", ["cpu"]))
    return messages


def _command(name: str, arguments: Any) -> Message:
    return _message("workspace/executeCommand", {"command": name, "arguments": arguments}, True)


def run(count: int, seed: int) -> Report:
    return converse(draw, count, seed)


def run_commands(count: int, seed: int) -> Report:
    return converse(draw_commands, count, seed, odd_answers=True)
