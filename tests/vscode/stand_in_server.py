"""A language server that says what a test tells it: `stand_in_server.py FOLDER`.

Whatever is written to `said.jsonl` in the folder, a message a line, it sends to the editor. The
commands that the editor runs are the lines of `asked.txt`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

PAUSE = 0.1
"""Seconds between two looks at what is to be said."""

CAPABILITIES = {"executeCommandProvider": {"commands": ["jaxsight.restart"]}}

_writing = threading.Lock()


def send(message: dict[str, object]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with _writing:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        sys.stdout.buffer.flush()


def receive() -> dict[str, Any]:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if not length:
        sys.exit()
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    return message


def say(file: Path) -> None:
    with file.open(encoding="utf-8") as said:
        while True:
            if line := said.readline():
                send(json.loads(line))
            else:
                time.sleep(PAUSE)


def main(folder: Path) -> None:
    said = folder / "said.jsonl"
    said.touch()
    while True:
        message = receive()
        match message:
            case {"method": "initialize", "id": number}:
                send({"id": number, "result": {"capabilities": CAPABILITIES}})
                threading.Thread(target=say, args=(said,), daemon=True).start()
            case {"method": "exit"}:
                return
            case {"method": "workspace/executeCommand", "id": number, "params": params}:
                with (folder / "asked.txt").open("a", encoding="utf-8") as asked:
                    asked.write(f"{params['command']}\n")
                send({"id": number, "result": None})
            case {"method": _, "id": number}:
                send({"id": number, "result": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
