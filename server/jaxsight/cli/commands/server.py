"""Start the language server: `jaxsight server`."""

from __future__ import annotations

import sys

from jaxsight.cli.resident.endpoint import IDLE


def server(
    *,
    trust: str | None = None,
    socket: bool = False,
    idle: float = IDLE,
    stop: bool = False,
    descriptor: int | None = None,
) -> None:
    """Start the language server on stdio (run by editors).

    Args:
        trust (ask|opened|always|never|editor): Whether to run code in folders without a decision;
            [cyan]opened[/cyan]: in those that the client opens; [cyan]editor[/cyan]: the client
            decides. [default: the user's setting]
        socket: Run the commands of this environment instead, for the next.
        idle (SECONDS): With [cyan]--socket[/cyan]: seconds without a command to end after.
        stop: End your servers for commands.
        descriptor:
    """
    if stop or socket:
        from jaxsight.cli.resident import server as resident

        sys.exit(resident.stop() if stop else resident.serve(idle, descriptor))
    from jaxsight.lsp.server import main

    sys.exit(main(["--trust", trust] if trust else []))
