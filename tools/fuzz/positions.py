"""Positions and edits: negative, huge, inside characters, reversed, out of range, versions that go
back, in all three encodings."""

from __future__ import annotations

from random import Random
from typing import Any

from tools.fuzz.conversation import MODEL, MODEL_TEXT, Message, Talk, converse, numbers
from tools.fuzz.report import Report

ENCODINGS = ("utf-16", "utf-8", "utf-32")
TEXTS = (
    "",
    "\n",
    "\r",
    "\r\n",
    "x",
    "😋",
    "é\n",
    "def g(x):\n    return x\n",
    '"""',
    "(",
    "    ",
    "\u2028",
    "\f",
    "\x00",
    "𝒳 = 1\n",
    "\ud83d",
    "\t",
)
_ids = numbers()


def _number(random: Random, usual: int) -> Any:
    kind = random.random()
    if kind < 0.02:  # a message with such a one is refused whole
        return random.choice((-1, -(2**31), 2**31, 10**20))
    return (
        random.choice((usual, usual + 1, 2**31 - 1)) if kind < 0.2 else random.randrange(usual + 2)
    )


def _position(random: Random) -> dict[str, Any]:
    return {"line": _number(random, 16), "character": _number(random, 110)}


def _range(random: Random) -> dict[str, Any]:
    start = _position(random)
    return {"start": start, "end": random.choice((start, _position(random), _position(random)))}


def draw(random: Random, talk: Talk) -> list[Message]:
    uri = talk.uri(MODEL)
    item = {"uri": uri, "languageId": "python", "version": 1, "text": MODEL_TEXT}
    messages: list[Message] = [{"method": "textDocument/didOpen", "params": {"textDocument": item}}]
    document = {"uri": uri}
    for _ in range(9):
        if random.random() < 0.5:
            changes: list[dict[str, Any]] = [
                {"range": _range(random), "text": random.choice(TEXTS)}
                for _ in range(random.choice((1, 1, 2, 5)))
            ]
            if random.random() < 0.1:
                changes.append({"text": MODEL_TEXT})
            if random.random() < 0.2:
                changes[0]["rangeLength"] = random.choice((-1, 0, 3, 2**40))
            versioned = {**document, "version": random.choice((0, 1, 2, 5, -1, 2**31 - 1))}
            params: dict[str, Any] = {"textDocument": versioned, "contentChanges": changes}
            messages.append({"method": "textDocument/didChange", "params": params})
            continue
        method, own = random.choice(
            (
                ("textDocument/hover", {"position": _position(random)}),
                ("textDocument/completion", {"position": _position(random)}),
                ("textDocument/inlayHint", {"range": _range(random)}),
                (
                    "textDocument/codeAction",
                    {"range": _range(random), "context": {"diagnostics": []}},
                ),
                ("jaxsight/panel", {"uri": uri, "position": _position(random)}),
            )
        )
        messages.append(
            {"id": next(_ids), "method": method, "params": {"textDocument": document, **own}}
        )
    return messages


def run(count: int, seed: int) -> Report:
    return converse(draw, count, seed, ENCODINGS)
