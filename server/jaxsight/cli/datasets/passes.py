"""Count what XLA's passes make of rows of a dataset: `passes`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from jaxsight.cli.datasets.around import explained, interruptible
from jaxsight.cli.datasets.printing import print_passes
from jaxsight.cli.datasets.progress import RowProgress
from jaxsight.cli.errors import CommandError
from jaxsight.cli.execution import INTERRUPTED, command
from jaxsight.cli.options import AsJson, Python
from jaxsight.cli.output.printing import print_json
from jaxsight.cli.user_python import user_interpreter
from jaxsight.dataset.passes import table
from jaxsight.dataset.program import Record
from jaxsight.dataset.tables import again, manifest
from jaxsight.text.inert import one_line

app = typer.Typer()


@app.command("passes")
@command
def passes(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="Folder of the dataset.")],
    sample: Annotated[
        int | None, typer.Option(min=1, help="Rows to compile.", show_default="all")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice of rows.")] = 0,
    python: Python = None,
    as_json: AsJson = False,
) -> int:
    """Compile rows for this machine's CPU, and add what each pass of XLA left to a table.

    It has the passes that changed each direction, with the number of instructions, operations,
    fusions and loops after each. Only StableHLO is compiled, and nothing is run. Ctrl-C keeps what
    was counted. The rows stay as they are.
    """
    with explained(), interruptible(), RowProgress("directions") as progress:
        described = manifest.read(dataset)
        interpreter = user_interpreter(python)
        total = sum(described.splits("rows").values())
        chosen = again.numbers(dataset, described, sample or total, seed)
        if not chosen:
            raise CommandError(f"{one_line(str(dataset))} has no rows to compile")
        rows = again.some(dataset, described, chosen, table.COLUMNS)
        counted: list[Record] = []
        rejected = Counter[str]()
        code = 0
        try:
            for record in table.count(rows, interpreter):
                if "rejected" in record:
                    rejected[record["rejected"]] += 1
                else:
                    counted.append(record)
                progress.step()
        except KeyboardInterrupt:
            code = INTERRUPTED
        if counted:
            table.add(dataset, described, counted)
    causes = dict(rejected.most_common())
    if as_json:
        print_json({"rows": len(chosen), "passes": counted, "not_compiled": causes})
    else:
        print_passes(counted, causes)
    return code
