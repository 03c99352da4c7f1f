"""Write a report of functions as one HTML file: `jaxsight report FILE:FUNCTION…`."""

from __future__ import annotations

from pathlib import Path

from jaxsight.cli.command_run import start_run
from jaxsight.cli.errors import FOUND, CommandError, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.output.printing import Printer, write_file
from jaxsight.cli.parameters import Allow, InputsChoice, Python, SetName, Targets, WhichInputs
from jaxsight.cli.reporting.anonymous import anonymous, own_names
from jaxsight.cli.reporting.collecting import Report, display_file, sides
from jaxsight.page import embedded
from jaxsight.sweeps.points import BadSizes, SweptSize, combined, parse
from jaxsight.text.inert import one_line
from jaxsight.text.units import count, size


@command
async def report(
    functions: list[str],
    *,
    targets: Targets = None,
    output: Path = Path("report.html"),
    against: list[str] | None = None,
    sweep: list[str] | None = None,
    measured: bool = False,
    anonymize: bool = False,
    ran: bool = False,
    set_name: SetName = None,
    python: Python = None,
    allow: Allow = None,
    which: WhichInputs = InputsChoice.ALL,
) -> int:
    """Write functions, or what a run compiled, as one HTML file to send.

    It opens without network, and has figures, the interactive kernel graph, memory, source, jaxpr,
    StableHLO, HLO and findings, with all functions and targets side by side. The functions are run
    with [cyan]--measure[/cyan] only. With [cyan]--run[/cyan], a program runs unmodified, and the
    file has what it compiled, and why.

    [bold]Examples[/bold]

        jaxsight report model.py:loss -t cuda:h100 -o loss.html
        jaxsight report model.py:fast --against model.py:slow --sweep B=1..64
        jaxsight report model.py:loss --against HEAD --against .venv-old/bin/python --anonymize
        jaxsight report --run -o run.html -- python train.py --epochs 1

    Args:
        functions (FILE:FUNCTION): Functions, or methods as Class.method; with [cyan]--run[/cyan],
            the program.
        output (--output -o FILE): HTML file to write.
        against (FILE:FUNCTION|REVISION|PYTHON): Also report another function, the same functions in
            a git revision, or as traced by another Python, with its JAX. Repeatable.
        sweep (SIZE=VALUES): Also compile with other sizes, such as [cyan]B=1..64[/cyan].
            Repeatable.
        measured (--measure): Also run the functions on the targets that are devices here.
        anonymize: Leave out paths, and the names of the user and machine.
        ran (--run): Run a program instead, and report what it compiles.
    """
    if ran:
        if targets or against or sweep or measured or set_name or allow:
            raise CommandError("`--run` takes only `--output`, `--python` and `--anonymize`")
        from jaxsight.cli.reporting.run_report import report_run  # others do not wait for it

        return report_run(functions, output, python, anonymize=anonymize)
    errors = Printer(stderr=True)
    found = Report(targets or (), _swept(sweep or ()), measured, set_name)
    wanted = sides(functions, against or ())
    for number, side in enumerate(wanted):
        paths = {address.path for address in side.addresses}
        interpreter = side.python or python
        async with start_run(paths, interpreter, allow, which, targets=targets or ()) as run:
            if not await found.collect(run, side, number, errors):
                return FOUND
    names = ", ".join(dict.fromkeys(each.function for each in wanted[0].addresses))
    data = found.data(names)
    if anonymize:
        contents = [each for entry in found.entries for each in entry["contents"].values()]
        texts = [each["text"] for each in contents]
        data = anonymous(data, texts, own_names())
    page = embedded(data, f"{names} · jaxsight").encode("utf-8", "backslashreplace")
    write_file(output, page)
    for remark in found.remarks:
        errors.labelled("note", "bold", remark)
    entries = count(len(found.entries), "program")
    path = output.absolute()  # noqa: ASYNC240  # this process has nothing else to do
    errors.print(f"{display_file(path)}: {entries}, {size(len(page))}")
    return FOUND if found.is_partial else 0


def _swept(texts: list[str] | tuple[()]) -> list[SweptSize]:
    """Return the sizes to compile with.

    Raises:
        CommandError: one of them is not understood, or together they are too many.
    """
    with failing_on(BadSizes):
        swept = []
        for text in texts:
            if (parsed := parse(text)) is None:
                raise CommandError(f"invalid sizes {one_line(text)!r}; write e.g. B=1..64")
            swept.append(parsed)
        if swept:
            combined(swept)
        return swept
