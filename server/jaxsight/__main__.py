"""The command `jaxsight`.

`server`, which editors start, and `--version` must not wait for the terminal libraries.
"""

from __future__ import annotations

import sys


def _leave_working_folder() -> None:
    """Import nothing from the working folder, which may be a workspace that nobody trusts.

    `python -m` puts it on the path, and so does an empty entry of `PYTHONPATH`.
    """
    import os

    if not (sys.flags.safe_path or sys.flags.isolated) and __name__ == "__main__":
        del sys.path[0]
    if "" in os.environ.get("PYTHONPATH", "-").split(os.pathsep):
        here = os.getcwd()  # noqa: PTH109 - nothing is imported yet
        sys.path[:] = [entry for entry in sys.path if entry not in ("", here)]


_leave_working_folder()

import importlib.util

from jaxsight import __version__

TRACING = frozenset({"ask", "check", "kernels", "lock", "show", "sourcerize", "sweep"})
"""The commands that a server runs (`cli/resident/`). `measure` wants a quiet process of its own."""
NO_SERVER = "--no-server"
_OF_TERMINAL = {"--help", "-h", "--socket", "--stop"}
"""Options of `server` with which it is no language server."""


def main() -> None:
    """Run the command line of this process and exit."""
    match sys.argv[1:]:
        case ["--version"]:
            print(f"jaxsight {__version__}")
        case ["server", *options] if not _OF_TERMINAL & {*options}:
            from jaxsight.lsp.server import main as serve

            sys.exit(serve(options))
        case ["record", *options] if importlib.util.find_spec("jaxsight.cli") is None:
            # The server that an editor brings along has no terminal.
            from jaxsight.recording.__main__ import main as record

            sys.exit(record(options))
        case arguments:
            run(arguments)


def run(arguments: list[str]) -> None:
    """Run a command, in a server for commands if that may, and exit."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    plain = [each for each in arguments[:end] if each != NO_SERVER] + arguments[end:]
    is_traced = plain == arguments and arguments and arguments[0] in TRACING
    if is_traced and not {"--help", "-h"} & {*arguments}:
        from jaxsight.cli.resident import client

        status = client.run(arguments)
        if status is not None:
            sys.exit(status)
    from jaxsight.cli.app import app

    app(plain, prog_name="jaxsight")


if __name__ == "__main__":
    main()
