"""From a name in a printed program to its definition and to its uses."""

from __future__ import annotations

from jaxsight.features.printed_programs.program import FUNCTION, PrintedProgram

_MOST_HIGHLIGHTS = 2_000
"""Occurrences of a value, a choice: those around the cursor; editors draw each."""
Span = tuple[int, int]
"""Offsets of start and end."""


def definition(program: PrintedProgram, offset: int) -> Span | None:
    """Return the definition of what is used at an offset.

    `None` if there is no use: neither at the definition itself nor anywhere else.
    """
    if (named := program.key_at(offset)) is None:
        return None
    key, start, _ = named
    defined = program.definition(key, start)
    if defined is None or defined[1] == start:
        return None
    return program.word(defined[1])


def occurrences(program: PrintedProgram, offset: int) -> tuple[list[Span], Span | None]:
    """Return all places of the name at an offset, and its definition among them."""
    if (named := program.key_at(offset)) is None:
        return [], None
    key, start, _ = named
    defined = program.definition(key, start)
    if key.startswith(FUNCTION):
        # A name of a custom call is defined nowhere.
        places = program.places[key]
    elif defined is not None:
        places = list(program.uses(key, defined[0]))
    else:
        places = [start]
    spans = [program.word(place) for place in dict.fromkeys(places)]
    return spans, program.word(defined[1]) if defined is not None else None


def nearest(spans: list[Span], offset: int) -> list[Span]:
    """Return those of many places that are near an offset, in order."""
    if len(spans) <= _MOST_HIGHLIGHTS:
        return spans
    return sorted(sorted(spans, key=lambda span: abs(span[0] - offset))[:_MOST_HIGHLIGHTS])
