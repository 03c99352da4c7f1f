"""`jaxsight report --run`: run a program, and write what it compiled as one page."""

from __future__ import annotations

import os
from pathlib import Path

from jaxsight.cli.errors import FOUND, CommandError
from jaxsight.cli.output.printing import Printer, write_file
from jaxsight.cli.reporting.anonymous import anonymous, own_names, without_folders
from jaxsight.cli.user_python import program_environment, starting
from jaxsight.recording import running
from jaxsight.recording.running import root_of
from jaxsight.runs.collected import collect
from jaxsight.runs.merging import merged
from jaxsight.runs.page.document import document
from jaxsight.text.inert import one_line
from jaxsight.text.units import count, time


def report_run(program: list[str], output: Path, python: str | None, *, anonymize: bool) -> int:
    """Run a program, write the page of what it compiled, and return its exit status.

    Args:
        program: the program with its arguments.
        output: the page.
        python: the interpreter; `None`: that of the program, or ours.
        anonymize: whether the page has no paths, and not the names of the user and machine.

    Raises:
        CommandError: the program does not start, or the page cannot be written.
    """
    folder = output.absolute().parent
    if output.is_dir() or not os.access(folder, os.W_OK):
        raise CommandError(f"cannot write {one_line(str(output))}: not a file in a writable folder")
    interpreter, environment = program_environment(python, root_of(program, Path.cwd()))
    with starting(program):
        ran = running.with_python(program, interpreter)
        summary, processes = collect(ran, environment, program)
    printer = Printer(stderr=True)
    if not processes:
        printer.labelled("error", "bold red", "the program did not import JAX; no page is written")
        return summary.status or FOUND
    programs = [program for process in processes for program in process.programs]
    page = summary, processes, merged(processes)
    if anonymize:
        texts = [text for program in programs for text in (program.jaxpr, program.hlo)]
        page = anonymous(page, texts, own_names())
        shown, run = page[0], page[1]
        shown.command = without_folders(shown.command)
        for process in run:
            process.command = without_folders(process.command)
    write_file(output, document(*page).encode())
    took = f" in {time(sum(program.seconds for program in programs))}" if programs else ""
    where = f" ({count(len(processes), 'process', 'processes')})" if len(processes) > 1 else ""
    compiled = f"{count(len(programs), 'program')} compiled{took}{where}"
    printer.print(f"jaxsight: {compiled}: {one_line(str(output))}")
    return summary.status
