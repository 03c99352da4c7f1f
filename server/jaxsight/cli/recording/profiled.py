"""`jaxsight record --profile`: run a program, and print the profile of some of its steps."""

from __future__ import annotations

from pathlib import Path

from jaxsight.cli.commands.figures.profile import print_report
from jaxsight.cli.errors import FOUND, failing_on
from jaxsight.cli.output.printing import Printer
from jaxsight.cli.recording.starting import program_environment, starting
from jaxsight.features.profiles.report import report
from jaxsight.profiles.folders import NoProfile, files_of
from jaxsight.profiles.reading import read
from jaxsight.profiles.sources import ProfiledSources
from jaxsight.profiles.space import NotAProfile
from jaxsight.recording import profiling, running
from jaxsight.recording.program import root_of
from jaxsight.text.inert import one_line
from jaxsight_source import units
from jaxsight_source.files.reading import UnreadableError


def run_profiled(program: list[str], python: str | None, steps: int, function: str) -> int:
    """Run a program, print the profile of some of its steps, and return its exit status."""
    root = root_of(program, Path.cwd())
    interpreter, environment = program_environment(python, root)
    folder = profiling.new_folder(root)
    command = running.with_python(program, interpreter)
    with starting(program):
        ran = profiling.profile(command, folder, environment, steps=steps, function=function)
    printer = Printer(stderr=True, wrap=True)
    if ran.reason:
        printer.labelled("error", "bold red", f"no profile: {ran.reason}")
        return ran.status or FOUND
    with failing_on(NoProfile, NotAProfile, UnreadableError):
        files = files_of(folder)
        found = read(files)
    early = ", as the program ended" if ran.ended_early else ""
    calls = f"{units.count(ran.steps, 'call')} of {ran.function}{early}"
    printer.print(one_line(f"jaxsight: profiled {calls}: {files.paths[0].parent}"))
    print_report(printer, report(found, ProfiledSources(root.absolute(), found.taken)))
    return ran.status
