"""Each row of JX470's tables of renamed and removed names makes a short message that helps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jaxsight.rules.jx470_outdated_api.table import Replacement, rows
from jaxsight.rules.wording import MOST
from tools.lint.checkout import PACKAGE, Checkout, Offender

_TABLE = f"{PACKAGE}/rules/jx470_outdated_api/table.py"


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield rows of the tables with long messages, or without advice."""
    del checkout  # the tables are imported
    yield from of_rows(row for each in rows().values() for row in each)


def of_rows(known: Iterable[Replacement]) -> Iterator[Offender]:
    """Yield rows with long messages, or without advice."""
    for row in known:
        if len(row.message) > MOST:
            message = f"message of {len(row.message)} characters, more than {MOST}"
            yield Offender(_TABLE, 1, f"`{row.display}`: {message}")
        if not (row.new or row.help):
            yield Offender(_TABLE, 1, f"`{row.display}`: neither a new name nor help")
