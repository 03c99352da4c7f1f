"""Measure rows of a dataset on this machine's CPU: `time`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from jaxsight.cli.datasets.around import explained, interruptible, say_what_runs
from jaxsight.cli.datasets.printing import print_timings
from jaxsight.cli.datasets.progress import RowProgress
from jaxsight.cli.errors import CommandError
from jaxsight.cli.execution import INTERRUPTED, command
from jaxsight.cli.options import AsJson, Python
from jaxsight.cli.output.printing import Printer, print_json
from jaxsight.cli.user_python import user_interpreter
from jaxsight.dataset.program import Record
from jaxsight.dataset.tables import again, manifest
from jaxsight.dataset.timings import table
from jaxsight.text import units
from jaxsight.text.inert import one_line

app = typer.Typer()


@app.command("time")
@command
def time(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="Folder of the dataset.")],
    sample: Annotated[int, typer.Option(min=1, help="Rows to measure.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice of rows.")] = 0,
    seconds: Annotated[
        float,
        typer.Option(min=0.01, max=600.0, help="Most seconds of timed runs of a direction."),
    ] = table.SECONDS,
    python: Python = None,
    as_json: AsJson = False,
) -> int:
    """Run rows on this machine's CPU, and add what they took to the table of measured times.

    Runs of a direction end when their median is known to 1 %. Rows are measured one after another;
    measure on a machine that does nothing else. Ctrl-C keeps what was measured. The rows stay as
    they are.

    The source of these rows runs as your user, in processes that may not write files, start
    processes or use the network; this is no sandbox for code that exploits Python.
    """
    with explained(), interruptible(), RowProgress("directions") as progress:
        described = manifest.read(dataset)
        interpreter = user_interpreter(python)
        chosen = again.sample(dataset, described, sample, seed)
        if not chosen:
            raise CommandError(f"{one_line(str(dataset))} has no rows to measure")
        say_what_runs(f"the source of {units.count(len(chosen), 'row')}")
        progress.report("directions", 0, sum(len(row["directions"]) for row in chosen))
        measured: list[Record] = []
        rejected = Counter[str]()
        code = 0
        try:
            for record in table.measure(chosen, interpreter, seconds, _say_that_it_waits):
                if "rejected" in record:
                    rejected[record["rejected"]] += 1
                else:
                    measured.append(record)
                progress.step()
        except KeyboardInterrupt:
            code = INTERRUPTED
        if measured:
            table.add(dataset, described, measured)
    causes = dict(rejected.most_common())
    if as_json:
        print_json({"rows": len(chosen), "timings": measured, "not_measured": causes})
    else:
        print_timings(measured, causes)
    return code


def _say_that_it_waits() -> None:
    Printer(stderr=True).print("note: waiting until another measurement on this machine ends")
