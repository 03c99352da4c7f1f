"""Start a process of `jaxsight repro` by path with the user's Python: `python …/boot.py COMMAND`.

`run KIND CASE [--nan] -- ARGUMENT…` runs the user's program under capture, with its own standard
streams. The other commands print one JSON object per line on standard output: events named
`progress`, `done` or `error`.

Only this package becomes importable from its folder. At module level, this uses the standard
library only.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path


def make_importable(package: Path) -> None:
    """Make `package` importable under its own name, without its siblings."""
    name = package.name
    spec = importlib.util.spec_from_file_location(
        name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package at {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def report(event: dict[str, object]) -> None:
    """Print an event for whoever started this process."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def run(arguments: list[str]) -> int:
    """Run a user's program under capture."""
    from jaxsight.repro.capturing.run import run_program

    options, rest = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    kind, folder, *flags = options
    return run_program(Path(folder), kind, rest, finds_nan="--nan" in flags)


def emit(arguments: list[str]) -> int:
    """Write the repro of a case, with the variables that the program had."""
    from jaxsight.repro.capturing import case

    info = case.read_json(Path(arguments[0]), case.INFO)
    os.environ.update(info.get("environment", {}).get("variables", {}))
    from jaxsight.repro.emit.from_case import emit
    from jaxsight.repro.emit.repro_file import CannotEmit
    from jaxsight.repro.failures import Failure

    folder, out, *rest = arguments
    options = json.loads(rest[0]) if rest else {}
    died = Failure.of_record(options["died"]) if options.get("died") else None
    choices = {name: options[name] for name in ("anonymous", "check") if name in options}
    try:
        emitted = emit(Path(folder), Path(out), died=died, **choices)
    except CannotEmit as error:
        report({"event": "error", "message": str(error)})
        return 1
    report(
        {
            "event": "done",
            "path": str(emitted.path),
            "reproduces": emitted.reproduces,
            "expected": emitted.expected.record(),
            "observed": emitted.observed.record(),
        }
    )
    return 0


def reduce(arguments: list[str]) -> int:
    """Reduce a repro."""
    from jaxsight.repro.reducing.run import run

    return run(arguments, report)


COMMANDS = {"run": run, "emit": emit, "reduce": reduce}


def main() -> int:
    """Run the command of the process's arguments; return the exit status."""
    here = Path(__file__).resolve().parent
    if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == here:
        del sys.path[0]
    make_importable(here.parent)
    command, *arguments = sys.argv[1:]
    return COMMANDS[command](arguments)


if __name__ == "__main__":
    sys.exit(main())
