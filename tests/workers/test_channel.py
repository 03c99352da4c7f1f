"""What a guardian said last is heard, whatever the server writes to it meanwhile."""

from __future__ import annotations

import asyncio
import socket

from jaxsight.workers.watchdog.watched import Control


async def test_last_words_are_heard_by_a_server_that_writes_to_a_guardian_that_is_gone() -> None:
    own, its = socket.socketpair()
    own.setblocking(False)
    heard: list[bytes] = []
    over = asyncio.Event()
    line = Control(own, heard.append, over.set)
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: line, sock=own)
    its.sendall(b"rss 7\nexit 0 11\n")
    its.close()
    transport.write(b"busy 0 0\n")
    await asyncio.wait_for(over.wait(), 120)
    assert heard == [b"rss 7", b"exit 0 11"]
    transport.close()


async def test_lines_are_put_together() -> None:
    own, its = socket.socketpair()
    own.setblocking(False)
    heard: list[bytes] = []
    over = asyncio.Event()
    line = Control(own, heard.append, over.set)
    await asyncio.get_running_loop().create_connection(lambda: line, sock=own)
    its.sendall(b"started ")
    await asyncio.sleep(0)
    its.sendall(b"12\nexit 3 0\n")
    its.close()
    await asyncio.wait_for(over.wait(), 120)
    assert heard == [b"started 12", b"exit 3 0"]
