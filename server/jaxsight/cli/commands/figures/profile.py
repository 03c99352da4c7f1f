"""Show what a run spends its time on: `jaxsight profile LOGDIR`, `jaxsight profile --run -- …`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import rich_click as click

from jaxsight.cli.errors import FOUND, CommandError, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.options import AsJson, Python
from jaxsight.cli.output.file_writing import write_file
from jaxsight.cli.output.printing import Printer, Text, print_json, print_rows, styled
from jaxsight.cli.parameters import Option, Positional
from jaxsight.cli.recording.profiled import run_profiled
from jaxsight.features.profiles.page import page
from jaxsight.features.profiles.record import record
from jaxsight.features.profiles.report import ProfileReport, report
from jaxsight.files import reading
from jaxsight.profiles.reading import read
from jaxsight.profiles.sources import NoProfile, ProfiledSources, files_of
from jaxsight.profiles.space import NotAProfile
from jaxsight.recording.program import root_of
from jaxsight.text import units
from jaxsight.text.inert import one_line

Where = Annotated[
    list[str],
    Positional(
        metavar="LOGDIR|FILE.xplane.pb",
        help="Log folder of [cyan]jax.profiler.trace[/cyan] or XProf, of which the newest run is "
        "shown; or the folder of a run, or one of its files; with [cyan]--run[/cyan], the program.",
    ),
]

Ran = Annotated[
    bool, Option("--run", help="Run a program, and profile some steps once it has compiled them.")
]

Steps = Annotated[int, Option(metavar="N", help="With [cyan]--run[/cyan]: steps.", min=1)]

StepFunction = Annotated[
    str,
    Option(
        "--step",
        metavar="NAME",
        help="With [cyan]--run[/cyan]: the compiled function whose calls are steps.",
        show_default="the first that is called four times",
    ),
]

Open = Annotated[bool, Option("--open", help="Open the report in the browser.")]

Root = Annotated[
    Path | None,
    Option(
        metavar="FOLDER",
        help="Folder with the sources of a profile from another machine.",
        show_default="the current folder",
    ),
]


@command
def profile(
    where: Where,
    ran: Ran = False,
    steps: Steps = 5,
    step: StepFunction = "",
    python: Python = None,
    open_page: Open = False,
    root: Root = None,
    as_json: AsJson = False,
) -> int:
    """Show which lines of your files a run spends its time on.

    A profile is what [bold]jax.profiler.trace[/bold] or XProf has recorded on CPUs, GPUs or TPUs.
    Nothing is run, and JAX is not needed. With [cyan]--run[/cyan], a program runs unmodified, JAX
    profiles some of its steps to [bold].jaxsight/profiles[/bold], and the report goes to stderr.

    [bold]Examples[/bold]

        jaxsight profile logs
        jaxsight profile logs/plugins/profile/2026_11_27_10_00_00/host.xplane.pb --json
        jaxsight profile --run -- python train.py
        jaxsight profile --run --steps 20 --step train_step -- python train.py
    """
    root = root or (root_of(where, Path.cwd()) if ran else Path())
    status, folder = 0, Path(where[0])
    if ran:
        status, profiled = run_profiled(where, python, root, steps, step)
        if profiled is None:
            return status or FOUND
        folder = profiled
    elif len(where) > 1:
        raise CommandError("several arguments; to profile a program, write `--run` first")
    errors = Printer(stderr=True)
    with failing_on(NoProfile, NotAProfile, reading.UnreadableError):
        files = files_of(folder)
        with errors.status("") as shown:

            def progress(done: int, total: int) -> None:
                shown.update(Text(f"reading the profile: {done / max(total, 1):.0%}"))

            found = read(files, progress)
    for other in files.others[:1]:
        more = f" and {len(files.others) - 1} more" if len(files.others) > 1 else ""
        errors.print_line(f"older runs: {other}{more}", "dim")
    sources = ProfiledSources(root.absolute(), found.taken)
    made = report(found, sources)
    if as_json:
        print_json(record(found, sources))
    else:
        print_report(Printer(stderr=ran, wrap=True), made)
    if open_page:
        page_file = Path(tempfile.mkdtemp(prefix="jaxsight-profile-")) / "profile.html"
        write_file(page_file, page(made).encode())
        errors.print(one_line(f"opening {page_file}"))
        click.launch(page_file.as_uri())
    return status


def print_report(printer: Printer, made: ProfileReport) -> None:
    """Print the tables of a report."""
    printer.print_line(made.title, "bold")
    printer.print_line(made.recorded, "dim")
    for section in made.sections:
        printer.print()
        print_rows(printer, section.columns, section.rows, section.sides, is_cut=True)
        if section.more:
            more = units.count(section.more, "more row", "more rows")
            printer.print(styled((f"and {more} (use --json to list all)", "dim")))
    printer.print()
    for note in made.notes:
        printer.print_line(note, "dim")
