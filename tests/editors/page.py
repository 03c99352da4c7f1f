"""The panel's page without a browser: prints what it is answered about the editor's cursor.

`python page.py ADDRESS`, that of the page; it ends with the server.
"""

from __future__ import annotations

import asyncio
import json
import sys
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

AGAIN = 0.5
"""Seconds after which it asks again: the first answer may be that there is none yet."""


async def follow(address: str) -> None:
    where = urlsplit(address)
    params = None
    socket = connect(
        f"ws://{where.netloc}{where.path}socket", origin=Origin(f"http://{where.netloc}")
    )
    async with socket as connection:
        while True:
            try:
                message = json.loads(await asyncio.wait_for(connection.recv(), AGAIN))
            except TimeoutError:
                message = {}
            except ConnectionClosed:
                return
            if message.get("method") == "jaxsight/cursor":
                at = message["params"]
                params = {"uri": at["textDocument"]["uri"], "position": at["position"]}
            elif "result" in message:
                print(json.dumps(message["result"], separators=(",", ":")), flush=True)
            elif params is not None:
                request = {"id": 1, "method": "jaxsight/panel", "params": params}
                await connection.send(json.dumps(request))


asyncio.run(follow(sys.argv[1]))
