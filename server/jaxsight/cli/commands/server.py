"""Start the language server: `jaxsight server`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

Tcp = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Listen for one client on a TCP port instead of stdio."),
]

Trust = Annotated[
    str | None,
    typer.Option(
        metavar="ask|always|never|editor",
        help="Whether to run code in folders without a decision; [cyan]editor[/cyan]: the client "
        "decides.",
        show_default="the user's setting",
    ),
]


def server(tcp: Tcp = None, trust: Trust = None) -> None:
    """Start the language server on stdio (run by editors)."""
    from jaxsight.lsp.server import main

    sys.exit(main([*(["--tcp", tcp] if tcp else []), *(["--trust", trust] if trust else [])]))
