"""The server's process around the fake engine, which prints while it works and says when it is
closed.
"""

from __future__ import annotations

import os
import sys

from jaxsight.features.model import Hover
from jaxsight.lsp.server import main
from jaxsight.source.text import Position
from tests.lsp.client import Ready
from tests.lsp.fake_session import FakeSession


class PrintingSession(FakeSession):
    async def hover(self, path: str, position: Position) -> Hover | None:
        print("Content-Length: 3\r\n\r\nspoilt", flush=True)
        os.write(1, b"spoilt")
        assert os.read(0, 10) == b""
        return await super().hover(path, position)


class PrintingEngine(Ready):
    async def aclose(self) -> None:
        print("engine closed", file=sys.stderr, flush=True)


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "server"]
    sys.exit(main(arguments, lambda configuration: PrintingEngine(PrintingSession())))
