"""Record a run without the terminal's libraries, as an editor's copy of the server has none.

`python -m jaxsight record` is this where they are missing; else it has more options.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from jaxsight.recording import merging, running
from jaxsight.recording.running import root_of
from jaxsight.text.inert import one_line

_SERVER = str(Path(__file__).parents[2])
_LISTED = 20
"""Functions that are listed, a choice: about a screen."""


def main(arguments: Sequence[str]) -> int:
    """Run a command, print what was recorded, and return the command's exit status."""
    parser = argparse.ArgumentParser("jaxsight record", usage="%(prog)s [OPTIONS] -- COMMAND…")
    parser.add_argument("--python", help="Python interpreter with JAX installed.")
    parser.add_argument("--root", type=Path, help="Folder whose functions are recorded.")
    parser.add_argument("--line", action="store_true", help="COMMAND is one line, as in a shell.")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    command = shlex.split(options.command[0]) if options.line else options.command
    root = options.root or root_of(command, Path.cwd())
    # Programs do not find the folder of this server in `PYTHONPATH`.
    variables = dict(os.environ)
    paths = variables.pop("PYTHONPATH", "").split(os.pathsep)
    kept = [path for path in paths if path and os.path.realpath(path) != _SERVER]
    if kept:
        variables["PYTHONPATH"] = os.pathsep.join(kept)
    environment = running.program_environment(options.python, variables)
    try:
        recording = running.record(running.with_python(command, options.python), root, environment)
    except OSError as error:
        sys.stderr.write(f"error: {one_line(command[0])}: {error.strerror}\n")
        return running.status_of(error)
    for line in merging.summary(recording, root, _LISTED):
        sys.stderr.write(f"jaxsight: {line}\n")
    return recording.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
