"""Notebooks: cells come, go, move and change in any order, also such as there are none of."""

from __future__ import annotations

from random import Random
from typing import Any

from tools.fuzz.conversation import Message, Talk, converse, numbers
from tools.fuzz.pieces import mutated_json
from tools.fuzz.report import Report

TEXTS = (
    "import jax.numpy as jnp", "%%time\nx = 1", "!ls", "%matplotlib inline\n", "?jnp.sin",
    "x = !ls", "%%bash\nrm -rf x", "", "\n\n", "x = 1;", "def f(x:",
    'def f(x):\n    """\n    Example inputs:\n        x: f32[3]\n    """\n    return jnp.sin(x)',
    "'😋'; y = 2\r\nz = 3\r", "await g()", "f?", "%", "%%", "\t%x",
    '"""', '"""\n%not a magic\n"""', "\\\n%x", "(\n!x\n)",
)  # fmt: skip
NAMES = ("a", "b", "c", "d")
_ids = numbers()


def draw(random: Random, talk: Talk) -> list[Message]:
    book = talk.uri("book.ipynb")

    def cell(name: str) -> str:
        return f"vscode-notebook-cell:{talk.root.as_posix()}/book.ipynb#{name}"

    def item(name: str) -> dict[str, Any]:
        language = random.choice(("python", "python", "python", "markdown", "sql"))
        return {
            "uri": cell(name),
            "languageId": language,
            "version": random.randrange(5),
            "text": random.choice(TEXTS),
        }

    def kept(name: str) -> dict[str, Any]:
        return {"kind": random.choice((1, 2, 2, 2)), "document": cell(name)}

    def some() -> list[str]:
        return [random.choice(NAMES) for _ in range(random.randrange(5))]

    def position() -> dict[str, int]:
        return {"line": random.randrange(6), "character": random.randrange(12)}

    def opened() -> Message:
        notebook = {
            "uri": book,
            "notebookType": "jupyter-notebook",
            "version": 0,
            "cells": [kept(n) for n in some()],
        }
        params = {"notebookDocument": notebook, "cellTextDocuments": [item(n) for n in some()]}
        return {"method": "notebookDocument/didOpen", "params": params}

    def changed() -> Message:
        cells: dict[str, Any] = {}
        if random.random() < 0.6:
            array = {
                "start": random.choice((0, 0, 1, 2, 9, 2**31 - 1)),
                "deleteCount": random.choice((0, 0, 1, 2, 9, 2**31 - 1)),
            }
            if random.random() < 0.8:
                array["cells"] = [kept(n) for n in some()]  # type: ignore[assignment]
            cells["structure"] = {"array": array}
            if random.random() < 0.7:
                cells["structure"]["didOpen"] = [item(n) for n in some()]
            if random.random() < 0.4:
                cells["structure"]["didClose"] = [{"uri": cell(n)} for n in some()]
        if random.random() < 0.5:
            cells["textContent"] = [
                {
                    "document": {"uri": cell(name), "version": random.randrange(5)},
                    "changes": [
                        {"text": random.choice(TEXTS)}
                        if random.random() < 0.3
                        else {
                            "range": {"start": position(), "end": position()},
                            "text": random.choice(TEXTS),
                        }
                    ],
                }
                for name in some()
            ]
        if random.random() < 0.2:
            cells["data"] = [kept(n) for n in some()]
        change = {"cells": cells} if random.random() < 0.9 else {"metadata": {"x": 1}}
        params = {
            "notebookDocument": {"uri": book, "version": random.randrange(9)},
            "change": change,
        }
        return {"method": "notebookDocument/didChange", "params": params}

    def asked() -> Message:
        document = {"uri": cell(random.choice((*NAMES, "none")))}
        whole = {"start": {"line": 0, "character": 0}, "end": position()}
        method, own = random.choice(
            (
                ("textDocument/hover", {"position": position()}),
                ("textDocument/completion", {"position": position()}),
                ("textDocument/inlayHint", {"range": whole}),
                ("textDocument/diagnostic", {}),
                ("textDocument/codeLens", {}),
                ("textDocument/codeAction", {"range": whole, "context": {"diagnostics": []}}),
            )
        )
        return {"id": next(_ids), "method": method, "params": {"textDocument": document, **own}}

    def closed() -> Message:
        params = {
            "notebookDocument": {"uri": book},
            "cellTextDocuments": [{"uri": cell(n)} for n in some()],
        }
        return {"method": "notebookDocument/didClose", "params": params}

    messages = [opened()]
    for _ in range(9):
        message = random.choice((changed, changed, changed, asked, asked, asked, opened, closed))()
        if random.random() < 0.1:
            message["params"] = mutated_json(message["params"], random)
        messages.append(message)
    return messages


def run(count: int, seed: int) -> Report:
    return converse(draw, count, seed)
