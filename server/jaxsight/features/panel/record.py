"""A panel as JSON: the answer of `jaxsight/panel`, for editors and for pages.

docs/protocol.md describes the fields, and the panel's `messages.ts` has their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from jaxsight.features import caveats
from jaxsight.features.model import Panel
from jaxsight.figures.drawn import Drawn
from jaxsight.figures.drawn_record import Json, as_json, drawn_record
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
        "drawn": _drawn(panel, panel.drawn, locate) if panel.drawn is not None else None,
        **caveats.record(panel.caveats),
    }


def _drawn(panel: Panel, drawn: Drawn[Range], locate: Locate) -> Json:
    return drawn_record(
        drawn,
        locate,
        marks=caveats.marks(panel.caveats),
        notes=caveats.lines(panel.caveats),
        above=len(caveats.comment_lines(panel.caveats, "hlo")) + panel.stale + bool(panel.assumed),
    )


def swept_record(swept: DrawnSweep) -> Json:
    """Return a sweep as JSON."""
    return {field.name: as_json(getattr(swept, field.name)) for field in fields(swept)}
