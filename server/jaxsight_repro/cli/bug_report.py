"""The option `--issue`: the text of JAX's bug report form for a repro."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from jaxsight.cli.output.file_writing import write_file
from jaxsight.cli.parameters import Option
from jaxsight.files.reading import text as read_text
from jaxsight_repro.emit.issue import issue_text
from jaxsight_repro.failures import RunFailure
from jaxsight_repro.system import information

Issue = Annotated[
    Path | None,
    Option(
        "--issue", metavar="FILE", help="File for the text of JAX's bug report form, in Markdown."
    ),
]


def write_issue(issue: Path, repro: Path, python: str, failure: RunFailure) -> None:
    """Write the bug report of a repro."""
    text = issue_text(read_text(repro), failure, information(python))
    write_file(issue, text.encode())
