"""All figures of a function's kernels as JSON, with what is known of its trace."""

from __future__ import annotations

from jaxsight.features import caveats
from jaxsight.figures import record as figures
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.wire.messages.replies import Traced


def record(kernels: LocatedFigures, function: str) -> dict[str, object]:
    """Return all figures as JSON; see `figures.record`.

    Raises:
        Incomplete: the compile ended before memory was known.
    """
    reply = kernels.view.answer.reply
    return {
        **figures.record(kernels, function),
        "assumed_inputs": list(kernels.view.assumed),
        "updates": list(reply.updates) if isinstance(reply, Traced) else [],
        **caveats.record(kernels.view.caveats),
    }
