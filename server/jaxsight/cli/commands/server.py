"""Start the language server: `jaxsight server`."""

from __future__ import annotations

import sys
from typing import Annotated

from jaxsight.cli.parameters import Option
from jaxsight.cli.resident.place import IDLE

Tcp = Annotated[
    str | None,
    Option(metavar="HOST:PORT", help="Listen for one client on a TCP port instead of stdio."),
]

Trust = Annotated[
    str | None,
    Option(
        metavar="ask|opened|always|never|editor",
        help="Whether to run code in folders without a decision; [cyan]opened[/cyan]: in those "
        "that the client opens; [cyan]editor[/cyan]: the client decides.",
        show_default="the user's setting",
    ),
]

Socket = Annotated[
    bool,
    Option("--socket", help="Run the commands of this environment instead, for the next."),
]

Idle = Annotated[
    float,
    Option(
        metavar="SECONDS",
        help="With [cyan]--socket[/cyan]: seconds without a command to end after.",
    ),
]

Stop = Annotated[bool, Option("--stop", help="End your servers for commands.")]


def server(
    tcp: Tcp = None,
    trust: Trust = None,
    socket: Socket = False,
    idle: Idle = IDLE,
    stop: Stop = False,
) -> None:
    """Start the language server on stdio (run by editors)."""
    if socket or stop:  # as `__main__` does before this is imported
        from jaxsight.cli.resident.server import main as serve_commands

        sys.exit(serve_commands(["--stop"] if stop else ["--socket", "--idle", str(idle)]))
    from jaxsight.lsp.server import main

    sys.exit(main([*(["--tcp", tcp] if tcp else []), *(["--trust", trust] if trust else [])]))
