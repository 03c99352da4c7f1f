"""The kernels of a function as a Markdown table, for a tooltip."""

from __future__ import annotations

from itertools import islice

from jaxsight.features import caveats
from jaxsight.features.distributed import collectives
from jaxsight.features.kernels import compile_time, host_transfers
from jaxsight.features.kernels.launches import iterations, undecided
from jaxsight.features.kernels.modules import FEW
from jaxsight.features.kernels.summary import memory_lines
from jaxsight.features.measuring.shown import ShownTimes, seconds_words
from jaxsight.figures.summary import launches_of, origin
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.text import units
from jaxsight.text.markdown import escaped, prose

_LOOPS = 4
"""Loops of known length that are listed, a choice: a sentence each."""
_TRANSFERS = 12
"""Transfers between host and device that a table has, a choice: one for each kind of array."""


def table(kernels: Kernels, times: ShownTimes | None = None) -> str:
    """Return a table of the first kernels, one of transfers, and the facts below them.

    Args:
        kernels: of the function.
        times: what the function took, if the user had it measured.
    """
    matched = times.matched if times is not None else None
    rows = ["| | kernel | launches | in | out | fusion boundary |", "|---|---|---|---|---|---|"]
    if matched is not None:
        rows = [f"{rows[0]} measured | share |", f"{rows[1]}---|---|"]
    shown = kernels.graph.kernels[:FEW]
    for index, kernel in enumerate(shown):
        description = f"{collectives.kernel_title(kernel)} {kernels.feeding(kernel)}".rstrip()
        rows.append(
            f"| {index + 1} | {escaped(description)} | {launches_of(kernel)} | "
            f"{units.size(kernel.bytes_in)} | "
            f"{units.size(kernel.bytes_out)} | {escaped(kernels.reason(kernel))} |"
        )
        if matched is not None:
            row = matched.by_kernel.get(index)
            cells = ("–", "–")
            if row is not None:
                cells = seconds_words(row.seconds, row.estimate_seconds), units.percent(row.share)
            rows[-1] += f" {' | '.join(map(escaped, cells))} |"
    more = kernels.graph.kernel_count - len(shown)
    end = [f"and {more} more"] if more else []
    if transfers := host_transfers.rows(kernels):
        head = [host_transfers.COLUMNS, ("---",) * len(host_transfers.COLUMNS)]
        lines = [f"| {' | '.join(row)} |" for row in head]
        lines += [f"| {' | '.join(map(escaped, row))} |" for row in transfers[:_TRANSFERS]]
        end.append("\n".join(lines))
        if (more := len(transfers) - _TRANSFERS) > 0:
            end.append(f"and {more} more")
    measured = [times.headline, *times.facts] if times is not None else []
    facts = [*map(prose, measured), escaped(origin(kernels.compiled, kernels.target))]
    known = (*memory_lines(kernels), *compile_time.notable_lines(kernels))
    facts += map(prose, (*kernels.target.facts, *known))
    left_out = caveats.markdown(kernels.view.caveats)
    loops = islice(iterations(kernels), _LOOPS)
    remarks = (*loops, *undecided(kernels), *kernels.compiled.notes)
    notes = [*map(prose, remarks), *([left_out] if left_out else [])]
    return "\n\n".join(["\n".join(rows), *end, *facts, *notes])
