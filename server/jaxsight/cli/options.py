"""The arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Function = Annotated[
    str,
    typer.Argument(
        metavar="FILE:FUNCTION", help="Function, or method as [cyan]Class.method[/cyan]."
    ),
]

SetName = Annotated[
    str | None,
    typer.Option("--set", metavar="NAME", help="Example set to use.", show_default="the first"),
]

Python = Annotated[
    str | None,
    typer.Option(
        metavar="PYTHON",
        help="Python interpreter with JAX installed.",
        show_default="auto-detected",
    ),
]

Allow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ssh://HOST|PYTHON",
        help="Allow the project's settings and docstrings to use this host, or this interpreter "
        "outside of the project. Repeatable.",
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
