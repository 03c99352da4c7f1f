"""The server, with each turn of its event loop that takes long written to a file:
`watched_server.py FILE`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jaxsight.lsp import server
from tools.perf.loop_watch import LoopWatch, Turn

LEAST = 0.002
"""Seconds from which a turn is written down."""


def main() -> None:
    with Path(sys.argv[1]).open("w", encoding="utf-8", buffering=1) as file:

        def write(turn: Turn) -> None:
            print(f"{turn.seconds * 1000:.1f} {' < '.join(turn.where[:3])}", file=file)

        server.main([], loop_factory=LoopWatch(write, LEAST).loop)


if __name__ == "__main__":
    main()
