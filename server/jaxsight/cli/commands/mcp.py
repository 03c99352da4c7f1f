"""Serve coding agents over the Model Context Protocol: `jaxsight mcp`."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.execution import command


@command
def mcp(folders: list[Path] | None = None) -> int:
    """Serve coding agents over the Model Context Protocol, on stdio.

    The tools are ask, check, sweep, reduce and explain. Code runs only in folders that you name
    here, or trust: see [bold]jaxsight trust[/bold].

    [bold]Examples[/bold]

        jaxsight mcp
        jaxsight mcp ~/project
        claude mcp add jaxsight -- jaxsight mcp

    Args:
        folders (FOLDER): Folders whose code may run, besides those you trust. [default: none]
    """
    if find_spec("mcp") is None:
        raise CommandError("the package mcp is missing; run `pip install 'jaxsight[mcp]'`")
    from jaxsight.cli.agents import Tools
    from jaxsight.trust import Trust, TrustStore, chosen_policy, store_file

    named = [os.path.realpath(folder) for folder in folders or ()]
    trust = Trust(chosen_policy(), TrustStore(store_file()), named, terminal=True)
    Tools(trust, named, Path.cwd()).serve()
    return 0
