"""The share of each line in the time of the device, of functions that the user had measured."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import line_end, line_hints, of_views
from jaxsight.features.measuring.shown import lines_of, row_words, shown_times
from jaxsight.features.model import Hint
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.text import units
from jaxsight.text.markdown import escaped, prose

_SENTENCES = 12
"""Number of kernels that a tooltip describes, a choice: a line each."""


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield a hint for each line that the device worked for, stale ones of an older text."""

    def shares(kernels: LocatedFigures) -> Iterator[Hint]:
        known = shown_times(shown.engine, kernels.view, kernels.target, kernels)
        times = known.at_lines if known is not None else None
        if known is None or times is None:
            return
        lines = {
            line: part
            for line, part in lines_of(times).items()
            if line <= len(kernels.view.module.lines)
        }
        end = escaped(f"{known.headline}; {kernels.target.title}")
        yield from line_hints(
            shown,
            times.kernels,
            units.MEASURED,
            [(line_end(kernels.view.module, line - 1), line) for line in lines],
            lambda at: [units.percent(sum(lines[line] for line in at))],
            lambda line: "\n".join(
                f"* {prose(row_words(times, row))}"
                for row in [row for row in times.rows if line in row.lines][:_SENTENCES]
            ),
            1,
            end,
        )

    yield from of_views(shown, shares)


KIND = HintKind(("measured",), hints)
