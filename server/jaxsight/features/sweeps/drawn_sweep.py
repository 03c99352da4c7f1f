"""A sweep as an editor shows it: curves, a table, and what may be swept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.features.named_function import traced_function
from jaxsight.features.sweeps.sweeping import ResizableInputs, sweep
from jaxsight.queries.engine import Engine
from jaxsight.sweeps import table
from jaxsight.sweeps.picture import Picture, picture
from jaxsight.sweeps.points import BadSizes, parse

_AT_LEAST = 64
"""The last value of a suggested sweep at least, a choice: seven points."""


@dataclass(frozen=True, slots=True)
class DrawnSweep:
    """What a panel shows of a sweep; before one, only what may be swept."""

    suggested: str
    """Sizes with values, `B=1..64`, of the first that may be swept; empty if there is none."""
    sizes: tuple[str, ...]
    """The names of all that may be swept."""
    picture: Picture | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = ()
    trouble: str = ""
    """Why there is no picture."""


async def drawn_sweep(
    engine: Engine, path: str, function: str, texts: Sequence[str], figure: str
) -> DrawnSweep:
    """Return a sweep of a function for the first target.

    Args:
        engine: the engine.
        path: an open document.
        function: the function's qualified name.
        texts: the sizes, as on the command line (`B=1..64`); none for what may be swept.
        figure: the name of the figure that is drawn.
    """
    suggested, names = "", tuple[str, ...]()
    try:
        view = await traced_function(engine, path, function)
        given = ResizableInputs.of(view.answer.question).given
        names = tuple(given)
        for name, value in [*given.items()][:1]:
            suggested = f"{name}=1..{max(_AT_LEAST, 4 * (value or 0))}"
        if not texts:
            return DrawnSweep(suggested, names)
        swept = []
        for text in texts:
            if (size := parse(text)) is None:
                raise BadSizes(f"invalid sizes {text!r}; write e.g. {suggested or 'B=1..64'}")
            swept.append(size)
        found = await sweep(engine, path, function, swept)
        curves = picture([found], table.FIGURES[figure])
    except (LookupError, BadSizes) as error:
        return DrawnSweep(suggested, names, trouble=str(error.args[0]))
    columns = [size.name for size in swept] + [each.column for each in table.columns(found)]
    return DrawnSweep(
        suggested,
        names,
        curves,
        tuple(columns),
        tuple(table.rows(found)),
        tuple(table.remarks(found)),
    )
