"""Moves shared functions that need additional arguments into the written function.

Only that function knows the values that its caller passes in.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from jaxsight.sourcerizer.text.statements import Function, Remark, Statement, lines, roots


def split(
    functions: Sequence[Statement], passed: Iterable[str]
) -> tuple[list[Statement], list[Statement]]:
    """Split the module's functions into those that can stay and those that need a `passed` name.

    A function needs a name if it, or a function that it calls, reads it.
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
"""The maximum length of a reason; those of other packages may have thousands of characters."""


def _row(name: str, why: str) -> str:
    """Return the lines for a name and its reason."""
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
    """Return a docstring that explains additional or unchecked arguments, or an empty string."""
    rows = [_row(name, why) for name, why in (*placeholders, *fixed)]
    if not rows:
        return ""
    first = (
        "As the original, with arguments for values that cannot be written as source."
        if placeholders
        else "As the original, for fixed values of some arguments."
    )
    return "\n".join([first, "", "Args:", *rows])
