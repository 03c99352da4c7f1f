"""A panel as JSON: the answer of `jaxsight/panel`, for editors and for pages.

docs/protocol.md describes the fields, and `docs/schemas/panel.json` has their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from jaxsight.features import caveats
from jaxsight.features.model import Panel
from jaxsight.figures.panel import Json, panel_record
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.source.text import Range

if TYPE_CHECKING:
    from jaxsight.features.sweeps.drawn_sweep import DrawnSweep

Locate = Callable[[Range | None], Json | None]
"""Returns `{"uri", "range"}` of a place in the panel's file; `None` where nobody shows it."""


def record(
    panel: Panel, locate: Locate, targets: Sequence[str], documents: Mapping[str, str]
) -> Json:
    """Return a panel as JSON.

    Args:
        panel: the panel.
        locate: says where a place of its file is shown.
        targets: the targets that can be chosen.
        documents: the URIs of its texts, by kind.
    """
    return {
        "function": panel.function,
        **(locate(panel.range) or {"uri": "", "range": None}),
        "set": panel.chosen,
        "sets": list(panel.sets),
        "target": panel.target,
        "targets": list(targets),
        "stale": panel.stale,
        "assumed": panel.assumed,
        "measurable": panel.measurable,
        "trouble": panel.trouble,
        "documents": dict(documents),
        "drawn": _drawn(panel, panel.figures, locate) if panel.figures is not None else None,
        **caveats.record(panel.caveats),
    }


def _drawn(panel: Panel, figures: LocatedFigures, locate: Locate) -> Json:
    above = len(caveats.comment_lines(panel.caveats, "hlo")) + panel.stale + bool(panel.assumed)
    return panel_record(
        figures,
        locate,
        before=panel.before,
        measured=panel.measured,
        marks=caveats.marks(panel.caveats),
        first_notes=caveats.lines(panel.caveats),
        above=above,
    )


def swept_record(swept: DrawnSweep) -> Json:
    """Return a sweep as JSON."""
    return asdict(swept)
