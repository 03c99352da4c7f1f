"""A tracer without JAX, that does what the name of the function in a request says. Run as a script.

It does the first lines of the real one's start (the protocol on private descriptors, output on 1
and 2) and then whatever the test wants of a tracer: answer, wait, ignore a cancellation, print, die
in all ways.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "server"))

from jaxsight.wire import frames as wire
from jaxsight.wire.messages.replies import (
    VERSION,
    Cancelled,
    Failed,
    Hello,
    Listing,
    Spoiled,
    Stage,
    Traced,
)
from jaxsight.wire.messages.requests import Cancel, Overlay, Show, Trace
from jaxsight.wire.observations import Failure

memory: list[bytes] = []


def main(mode: str) -> None:
    incoming, outgoing = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    match mode:
        case "dies":
            print("no module named jax, or so", flush=True)
            os._exit(3)
        case "silent":
            time.sleep(1000)
        case "noise":
            os.write(outgoing, b"Python 3.11 says hello\n")
            time.sleep(1000)
        case "refuses":
            wire.write(outgoing, Hello(VERSION, "3.11", sys.executable, problem="There is no JAX."))
        case "old":
            wire.write(outgoing, Hello(VERSION + 1, "3.11", sys.executable))
        case _:
            hello = Hello(VERSION, "3.11", sys.executable, jax="0.10.2", pid=os.getpid())
            wire.write(outgoing, hello)
    overlays: dict[str, str | None] = {}
    broken = False
    spoiled_by = ""
    is_cancelled = False
    imported: list[str] = []
    reader = wire.FrameReader()
    waiting: list[wire.Message] = []

    def next_message() -> wire.Message:
        while not waiting:
            data = os.read(incoming, 65536)
            if not data:
                os._exit(0)
            waiting.extend(reader.feed(data))
        return waiting.pop(0)

    while True:
        match message := next_message():
            case Overlay(path=path, text=text):
                overlays[path] = text
            case Trace(id=id, function="", chunks=chunks):
                imported = [chunk.text for chunk in chunks]
                wire.write(outgoing, Stage(id, "execute"))
                wire.write(outgoing, Failed(id, Failure("find", "LookupError", "nothing")))
            case Trace(id=id, file=file) if spoiled_by not in ("", file):
                wire.write(outgoing, Spoiled(id, f"{spoiled_by} left a thread running"))
            case Trace(id=id, function="never fit"):
                wire.write(outgoing, Spoiled(id, "nothing helps"))
            case Trace(id=id, function=function, file=file):
                wire.write(outgoing, Stage(id, "execute"))
                if broken or function == "fail":
                    wire.write(outgoing, Failed(id, Failure("internal", "TypeError", "broken")))
                    continue
                match function.split():
                    case ["spoil"]:
                        spoiled_by = file
                    case ["break"]:
                        broken = True
                    case ["program", "until", "cancelled"]:
                        wire.write(outgoing, Stage(id, "inputs"))
                        if not is_cancelled:
                            is_cancelled = True
                            while next_message() != Cancel(id):
                                pass
                            wire.write(outgoing, Cancelled(id))
                            continue
                    case ["until", "cancelled"]:
                        while next_message() != Cancel(id):
                            pass
                        wire.write(outgoing, Cancelled(id))
                        continue
                    case ["stage", name]:
                        wire.write(outgoing, Stage(id, name))
                        time.sleep(1000)
                    case ["chunk", name]:
                        text = next(chunk.text for chunk in message.chunks if chunk.id == name)
                        wire.write(outgoing, Stage(id, "execute", text, name))
                        time.sleep(1000)
                    case ["imports"]:
                        answer(outgoing, id, repr(imported))
                        continue
                    case ["overlays"]:
                        answer(outgoing, id, repr(sorted(overlays.items())))
                        continue
                    case command:
                        obey(command, outgoing)
                answer(outgoing, id, str(os.getpid()))
            case Show(id=id):
                wire.write(outgoing, Listing(id, "text"))


def answer(outgoing: int, id: int, jaxpr: str) -> None:
    wire.write(outgoing, Traced(id, (), "", jaxpr, False, 0))


def obey(command: list[str], outgoing: int) -> None:
    match command:
        case ["answer"]:
            pass
        case ["hang"]:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                pass
        case ["exit", code]:
            print("so long", flush=True)
            os._exit(int(code))
        case ["crash"]:
            ctypes.string_at(0)
        case ["suicide"]:
            os.kill(os.getpid(), signal.SIGKILL)
        case ["eat"]:
            eaten = []
            while True:
                eaten.append(bytearray(os.urandom(1024) * 16 * 1024))
        case ["bomb"]:
            for _ in range(7):
                if os.fork():
                    os.setsid() if os.getpid() != os.getsid(0) else None
            time.sleep(1000)
        case ["breed"]:
            while True:
                subprocess.Popen(["sleep", "1000"])
        case ["leave", "a", "daemon"]:
            subprocess.Popen(["sleep", "1000"], start_new_session=True)
        case ["close", "everything"]:
            os.closerange(0, 1000)
            time.sleep(1000)
        case ["garble"]:
            os.write(outgoing, b"I am not a frame")
            time.sleep(1000)
        case ["print", count]:
            line = b"x" * 1023 + b"\n"
            for _ in range(int(count)):
                os.write(1, line)
        case ["say", *words]:
            print(" ".join(words), flush=True)
        case ["grow", megabytes]:
            memory.append(b"\1" * (int(megabytes) << 20))
        case ["mutter"]:
            threading.Thread(
                target=lambda: (time.sleep(0.2), print("left behind", flush=True)), daemon=True
            ).start()
        case _:
            raise ValueError(command)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
