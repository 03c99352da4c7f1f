"""Show what a run spends its time on: `jaxsight profile LOGDIR`, `jaxsight profile --run -- …`."""

from __future__ import annotations

from pathlib import Path

from jaxsight.cli.errors import FOUND, CommandError, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.output.printing import Printer, Text, print_json, print_rows, styled
from jaxsight.cli.parameters import AsJson, Python
from jaxsight.cli.user_python import program_environment, starting
from jaxsight.features.profiles import ProfileReport, record, report
from jaxsight.files import reading
from jaxsight.profiles.reading import read
from jaxsight.profiles.sources import NoProfile, ProfiledSources, files_of
from jaxsight.profiles.space import NotAProfile
from jaxsight.recording import running
from jaxsight.recording.running import root_of
from jaxsight.text import units
from jaxsight.text.inert import one_line


@command
def profile(
    where: list[str],
    *,
    ran: bool = False,
    steps: int = 5,
    step: str = "",
    python: Python = None,
    root: Path | None = None,
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

    Args:
        where (LOGDIR|FILE.xplane.pb): Log folder of [cyan]jax.profiler.trace[/cyan] or XProf, of
            which the newest run is shown; or the folder of a run, or one of its files; with
            [cyan]--run[/cyan], the program.
        ran (--run): Run a program, and profile some steps once it has compiled them.
        steps (N>=1): With [cyan]--run[/cyan]: steps.
        step (NAME): With [cyan]--run[/cyan]: the compiled function whose calls are steps. [default:
            the first that is called four times]
        root (FOLDER): Folder with the sources of a profile from another machine. [default: the
            current folder]
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
