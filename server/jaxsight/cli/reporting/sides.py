"""What a report compares: functions, revisions of their files, and other interpreters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.cli.sources.arguments import Address, parse_address, parse_against


@dataclass(frozen=True, slots=True)
class ReportSide:
    """Functions that are traced by one interpreter, from files or from a revision of them."""

    addresses: Sequence[Address]
    python: str | None = None
    """The interpreter of `--against`; `None`: that of the command."""

    @property
    def suffix(self) -> str:
        """What distinguishes it: ` at HEAD`, ` with .venv-old`; empty for what is reported."""
        if revision := self.addresses[0].revision:
            return f" at {revision}"
        if self.python is not None:
            folder = Path(self.python).absolute().parent.parent
            return f" with {folder.name or self.python}"
        return ""


def sides(functions: Sequence[str], against: Sequence[str]) -> list[ReportSide]:
    """Return the functions that are reported, and each side that they are compared with.

    Raises:
        CommandError: a file does not exist.
    """
    addresses = [parse_address(function) for function in functions]
    found = [ReportSide(addresses)]
    for text in against:
        if Path(text).name.startswith("python") and os.access(text, os.X_OK):
            found.append(ReportSide(addresses, python=text))
            continue
        others = [each for own in addresses if (each := parse_against(text, own)) is not None]
        found.append(ReportSide(others if others[0].revision else others[:1]))
    return found
