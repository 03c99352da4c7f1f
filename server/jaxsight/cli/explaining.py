"""The options of an explanation on the command line, and what is printed and written of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.file_writing import write_file
from jaxsight.cli.output.printing import Printer, Text
from jaxsight.files.private import cache_folder
from jaxsight.files.reading import text as read_text
from jaxsight.repro.emit.issue import issue_text
from jaxsight.repro.explaining import run as explaining
from jaxsight.repro.explaining.system import information
from jaxsight.repro.explanation import TITLES, Explanation
from jaxsight.repro.failures import RunFailure
from jaxsight.text.inert import one_line, visible

ALL = "all"

ExplainTables = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="TABLES",
        help="Tabulate under which conditions the repro fails: "
        f"[cyan]{ALL}[/cyan], or names separated by commas of "
        + ", ".join(f"[cyan]{name}[/cyan]" for name in TITLES)
        + ".",
    ),
]

OtherPythons = Annotated[
    list[str] | None,
    typer.Option(
        "--with-python",
        metavar="PYTHON",
        help="Another interpreter to run the repro with. Repeatable.",
    ),
]

Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host", metavar="HOST", help="Another machine to run the repro on, by ssh. Repeatable."
    ),
]

Offline = Annotated[
    bool, typer.Option("--offline", help="Install no other versions of JAX to run the repro with.")
]

Issue = Annotated[
    Path | None,
    typer.Option(
        "--issue", metavar="FILE", help="File for the text of JAX's bug report form, in Markdown."
    ),
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be explained, and where the bug report is written."""

    tables: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    offline: bool = False
    issue: Path | None = None


def table_names(text: str | None) -> tuple[str, ...]:
    """Return the tables of the option `--explain`.

    Raises:
        CommandError: there is no such table.
    """
    if text is None:
        return ()
    if text == ALL:
        return tuple(TITLES)
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in TITLES:
            known = ", ".join([ALL, *TITLES])
            raise CommandError(f"--explain has no table {name!r}; expected one of {known}")
    return names


def explain(file: Path, python: str, failure: RunFailure, wanted: Wanted) -> Explanation | None:
    """Return the tables, or None if none are wanted; write the bug report if it is wanted."""
    explanation = None
    errors = Printer(stderr=True)
    if wanted.tables:
        choices = explaining.Choices(
            tables=wanted.tables,
            expected=failure,
            pythons=wanted.pythons,
            hosts=wanted.hosts,
            environments=cache_folder("repro-environments"),
            offline=wanted.offline,
        )
        with errors.status("") as status:
            report: Callable[[str], None] = lambda step: status.update(Text(one_line(step)))
            explanation = explaining.explain(file, python, choices, report)
    if wanted.issue is not None:
        text = issue_text(read_text(file), failure, information(python), explanation)
        write_file(wanted.issue, text.encode())
    return explanation


def print_explanation(explanation: Explanation | None) -> None:
    """Print the tables."""
    if explanation is not None:
        for line in ["", *explanation.text().rstrip("\n").split("\n")]:
            Printer().print(visible(line))
