"""The locations in the user's code that created equations."""

from __future__ import annotations

import itertools
import re

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.locations import Location, locations
from jaxsight_source.files.ours import OURS

_FRAMES = 4
"""The number of the user's frames, from the innermost, that are examined for an assignment: those
farther out assign what many equations made."""

_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")


def made_at(equation: Equation) -> Location | None:
    """Return the location in the user's code that created an equation, if known."""
    for location in itertools.islice(locations(equation), _FRAMES):
        if not location.file.startswith(OURS):
            return location
    return None


def place(equation: Equation) -> str:
    """Return the location that created an equation as `file:line`, or an empty string.

    Paths of files in installed packages begin with the package.
    """
    at = made_at(equation)
    return f"{_INSTALLED.sub('', at.file)}:{at.line}" if at is not None else ""
