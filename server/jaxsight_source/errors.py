"""What the sourcerizer raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_LONGEST_VALUE = 40
"""The maximum length of a value in a message, in characters, as in those of rules."""


class SourceError(Exception):
    """A function or a program cannot be written as source."""


class Unwritable(Exception):
    """A value has no expression through public names."""

    def __init__(self, value: object, why: str = "") -> None:
        self.value = value
        about = f"{type(value).__module__}.{type(value).__qualname__}"
        shown = repr(value)
        if len(shown) > _LONGEST_VALUE:
            shown = f"{shown[:_LONGEST_VALUE]}…"
        super().__init__(f"no public expression for {shown} ({about}){': ' + why if why else ''}")


class Untraceable(SourceError, TypeError):
    """What is to be written is no function of arrays."""


class NotAProgram(SourceError, TypeError):
    """What is to be written has no program."""


class Unsourceable(SourceError):
    """An equation has no public expression, or none that could be proved."""

    def __init__(self, primitive: str, why: str, place: str = "") -> None:
        self.primitive = primitive
        self.why = why
        self.place = place
        super().__init__(f"cannot write {primitive}{' at ' + place if place else ''}: {why}")


class NotTheSame(Unsourceable):
    """A written text is not the same program, or has other results when it runs."""


class TooLong(SourceError):
    """A text has many more lines than its program has equations."""

    def __init__(self, written: str, equations: int, derivatives: str | None) -> None:
        advice = {"exact": 'derivatives="first"', "first": 'derivatives="primal"'}.get(
            derivatives or ""
        )
        why = f", mostly derivative rules; help: use {advice}" if advice else ""
        super().__init__(f"{written} for {equations:,} equations{why}")


class TooLarge(SourceError, ValueError):
    """The constants are too large for the text: `value` brings their sum to `total` bytes."""

    def __init__(self, value: np.ndarray, total: int) -> None:
        shape = "×".join(map(str, value.shape))
        constants = f"a constant of {value.nbytes:,} bytes ({value.dtype} {shape})"
        if total > value.nbytes:
            constants = f"constants of {total:,} bytes"
        super().__init__(
            f"the text cannot contain {constants}, only up to 1 MiB; "
            'help: use constants="npz" or constants="argument" (--constants in the terminal)'
        )
