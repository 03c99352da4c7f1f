"""The command `jaxsight`.

`server`, which editors start, and `--version` must not wait for the terminal libraries.
"""

from __future__ import annotations

import importlib.util
import sys

from jaxsight import __version__


def main() -> None:
    """Run the command line of this process and exit."""
    match sys.argv[1:]:
        case ["--version"]:
            print(f"jaxsight {__version__}")
        case ["server", *options] if "--help" not in options:
            from jaxsight.lsp.server import main as serve

            sys.exit(serve(options))
        case ["record", *options] if importlib.util.find_spec("typer") is None:
            # The server that an editor brings along has no terminal libraries.
            from jaxsight.recording.__main__ import main as record

            sys.exit(record(options))
        case _:
            from jaxsight.cli.app import app

            app()


if __name__ == "__main__":
    main()
