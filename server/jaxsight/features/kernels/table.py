"""The kernels of a function as a Markdown table, for a tooltip."""

from __future__ import annotations

from itertools import islice

from jaxsight.features import caveats
from jaxsight.features.measuring.shown import ShownTimes, seconds_words
from jaxsight.figures import compile_time, host_transfers
from jaxsight.figures.launches import iterations, undecided
from jaxsight.figures.modules import FEW
from jaxsight.figures.program_notes import memory_lines
from jaxsight.figures.rows import COLUMNS, filled, rows
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.text import units
from jaxsight.text.markdown import escaped, markdown_table, prose

_LOOPS = 4
"""Loops of known length that are listed, a choice: a sentence each."""
_TRANSFERS = 12
"""Transfers between host and device that a table has, a choice: one for each kind of array."""


def table(kernels: LocatedFigures, times: ShownTimes | None = None) -> str:
    """Return a table of the first kernels, one of transfers, and the facts below them.

    Args:
        kernels: of the function.
        times: what the function took, if the user had it measured.
    """
    matched = times.matched if times is not None else None
    graph = kernels.graph
    columns, shown = [*COLUMNS], [[*each.cells()] for each in rows(kernels, FEW)]
    if matched is not None:
        columns += ["measured", "share"]
        for index, cells in enumerate(shown):
            row = matched.by_kernel.get(index)
            took = seconds_words(row.seconds, row.estimate_seconds) if row is not None else "–"
            cells += [took, units.percent(row.share) if row is not None else "–"]
    titles, _, cells_of = filled(columns, " " * len(columns), shown)
    parts = [markdown_table(titles, *cells_of)]
    if (more := graph.kernel_count - len(shown)) > 0:
        parts.append(f"and {more} more")
    if transfers := host_transfers.rows(kernels):
        parts.append(markdown_table(host_transfers.COLUMNS, *transfers[:_TRANSFERS]))
        if (more := len(transfers) - _TRANSFERS) > 0:
            parts.append(f"and {more} more")
    measured = [times.headline, *times.facts] if times is not None else []
    facts = [*map(prose, measured), escaped(kernels.origin)]
    known = (*memory_lines(kernels), *compile_time.notable_lines(kernels))
    facts += map(prose, (*kernels.target.facts, *known))
    left_out = caveats.markdown(kernels.view.caveats)
    loops = islice(iterations(kernels), _LOOPS)
    remarks = (*loops, *undecided(kernels), *kernels.compiled.notes)
    notes = [*map(prose, remarks), *([left_out] if left_out else [])]
    return "\n\n".join([*parts, *facts, *notes])
