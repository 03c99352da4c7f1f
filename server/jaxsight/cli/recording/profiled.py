"""`jaxsight profile --run`: run a program, and have JAX profile some of its steps."""

from __future__ import annotations

from pathlib import Path

from jaxsight.cli.errors import failing_on
from jaxsight.cli.output.printing import Printer
from jaxsight.cli.recording.starting import program_environment, starting
from jaxsight.profiles.sources import NoProfile, files_of
from jaxsight.recording import running
from jaxsight.text import units
from jaxsight.text.inert import one_line


def run_profiled(
    program: list[str], python: str | None, root: Path, steps: int, function: str
) -> tuple[int, Path | None]:
    """Run a program; return its exit status, and the folder of its profile, if there is one.

    Raises:
        CommandError: the program does not start.
    """
    interpreter, environment = program_environment(python, root)
    folder = running.new_folder(root)
    command = running.with_python(program, interpreter)
    with starting(program):
        ran = running.profile(command, folder, environment, steps=steps, function=function)
    printer = Printer(stderr=True, wrap=True)
    if ran.reason:
        printer.labelled("error", "bold red", f"no profile: {ran.reason}")
        return ran.status, None
    with failing_on(NoProfile):
        profile = files_of(folder).paths[0].parent
    early = ", as the program ended" if ran.ended_early else ""
    calls = f"{units.count(ran.steps, 'call')} of {ran.function}{early}"
    printer.print(one_line(f"jaxsight: profiled {calls}: {profile}"))
    return ran.status, profile
