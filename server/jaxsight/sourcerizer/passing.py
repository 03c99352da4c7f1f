"""What the caller of a written function passes in is known inside that function alone: shared
functions that need it move there.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from jaxsight.sourcerizer.module import Function, Remark, Statement, lines, roots


def split(
    functions: Sequence[Statement], passed: Iterable[str]
) -> tuple[list[Statement], list[Statement]]:
    """The module's functions as those that may stay, and those that need something `passed` in,
    themselves or by what they call.
    """
    needed = set(passed)
    if not needed:
        return list(functions), []
    names = [roots("\n".join(line.text for line in lines([part]))) for part in functions]
    moving = [False] * len(functions)
    while True:
        before = len(needed)
        for index, (part, used) in enumerate(zip(functions, names, strict=True)):
            if not moving[index] and used & needed and not isinstance(part, Remark):
                moving[index] = True
                if isinstance(part, Function):
                    needed.add(part.name)
        if len(needed) == before:
            break
    for index, part in enumerate(functions[:-1]):
        if isinstance(part, Remark) and moving[index + 1]:
            moving[index] = True
    return (
        [part for part, moves in zip(functions, moving, strict=True) if not moves],
        [part for part, moves in zip(functions, moving, strict=True) if moves],
    )


_WIDTH = 88
_LONGEST = 400
"""Characters of a reason: programs of others may say thousands."""


def _row(name: str, why: str) -> str:
    """A name with its reason, over as many lines as it takes."""
    text = f"{name}: {textwrap.shorten(why, _LONGEST, placeholder=' …')}."
    return textwrap.fill(
        text,
        _WIDTH - 4,  # the docstring's own indentation
        initial_indent="    ",
        subsequent_indent="        ",
        break_on_hyphens=False,
    )


def explained(
    placeholders: Sequence[tuple[str, str]], fixed: Sequence[tuple[str, str]] = ()
) -> str:
    """The docstring of a written function that takes more than the original, or cannot check what
    it takes: for each name, why.
    """
    rows = [_row(name, why) for name, why in (*placeholders, *fixed)]
    if not rows:
        return ""
    first = (
        "As the original, but its caller passes in what no text can hold."
        if placeholders
        else "As the original, for some arguments as they were."
    )
    return "\n".join([first, "", "Args:", *rows])
