"""Show what a run spent its time on, from its profile: `jaxsight profile LOGDIR|FILE.xplane.pb`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from jaxsight.cli.errors import failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.options import AsJson
from jaxsight.cli.output.file_writing import write_file
from jaxsight.cli.output.printing import Printer, Text, print_json, print_rows, styled
from jaxsight.features.profiles.page import page
from jaxsight.features.profiles.record import record
from jaxsight.features.profiles.report import ProfileReport, report
from jaxsight.profiles.folders import NoProfile, files_of
from jaxsight.profiles.reading import read
from jaxsight.profiles.sources import ProfiledSources
from jaxsight.profiles.space import NotAProfile
from jaxsight.text.inert import one_line
from jaxsight_source import units
from jaxsight_source.files import reading

Where = Annotated[
    Path,
    typer.Argument(
        metavar="LOGDIR|FILE.xplane.pb",
        help="Log folder of [cyan]jax.profiler.trace[/cyan] or XProf, of which the newest run is "
        "shown; or the folder of a run, or one of its files.",
    ),
]

Open = Annotated[bool, typer.Option("--open", help="Open the report in the browser.")]

Root = Annotated[
    Path,
    typer.Option(
        "--root",
        metavar="FOLDER",
        help="Folder with the sources of a profile from another machine.",
        show_default="the current folder",
    ),
]


@command
def profile(
    where: Where, open_page: Open = False, root: Root = Path(), as_json: AsJson = False
) -> int:
    """Show which lines of your files a run spent its time on, from its profile.

    A profile is what [bold]jax.profiler.trace[/bold] or XProf has recorded on CPUs, GPUs or TPUs.
    Nothing is run, and JAX is not needed.

    [bold]Examples[/bold]

        jaxsight profile logs
        jaxsight profile logs/plugins/profile/2026_11_27_10_00_00/host.xplane.pb --json
        jaxsight record --profile -- python train.py
    """
    errors = Printer(stderr=True)
    with failing_on(NoProfile, NotAProfile, reading.UnreadableError):
        files = files_of(where)
        with errors.status("") as status:

            def progress(done: int, total: int) -> None:
                status.update(Text(f"reading the profile: {done / max(total, 1):.0%}"))

            found = read(files, progress)
    for other in files.others[:1]:
        more = f" and {len(files.others) - 1} more" if len(files.others) > 1 else ""
        errors.print(styled((one_line(f"older runs: {other}{more}"), "dim")))
    sources = ProfiledSources(root.absolute(), found.taken)
    made = report(found, sources)
    if as_json:
        print_json(record(found, sources))
    else:
        print_report(Printer(wrap=True), made)
    if open_page:
        folder = Path(tempfile.mkdtemp(prefix="jaxsight-profile-"))
        file = folder / "profile.html"
        write_file(file, page(made).encode())
        Printer(stderr=True).print(one_line(f"opening {file}"))
        typer.launch(file.as_uri())
    return 0


def print_report(printer: Printer, made: ProfileReport) -> None:
    """Print the tables of a report."""
    printer.print(styled((one_line(made.title), "bold")))
    printer.print(styled((one_line(made.recorded), "dim")))
    for section in made.sections:
        printer.print()
        print_rows(printer, section.columns, section.rows, section.sides, is_cut=True)
        if section.more:
            more = units.count(section.more, "more row", "more rows")
            printer.print(styled((f"and {more} (use --json to list all)", "dim")))
    printer.print()
    for note in made.notes:
        printer.print(styled((one_line(note), "dim")))
