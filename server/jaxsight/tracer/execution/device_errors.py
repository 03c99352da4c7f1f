"""Read off an error of user code how many devices it asks for.

The messages are those of JAX 0.8 to 0.12 and of NumPy; another wording leaves the user's own error.
"""

from __future__ import annotations

import linecache
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import jax

_CAUSES = 8
"""Causes of an error that are read; without a limit, a cyclic chain never ends."""
_MORE = 2
"""How many times as many devices to try if an error does not say how many it asks for.

Programs ask for powers of two; a larger step would skip the number that they run with.
"""

_MESH = re.compile(r"Number of devices (\d+) must .* the product of mesh_shape \(([\d, ]+)\)")
"""`jax.make_mesh` and `mesh_utils.create_device_mesh`."""
_RESHAPED = re.compile(r"cannot reshape array of size (\d+) into shape \(([\w,]+)\)")
"""`np.array(jax.devices()).reshape(2, 4)`; -1 is `newaxis`."""
_MAPPED = re.compile(
    r"squeeze out which has size .* got shape=\(([\d, ]+)\) and dimensions=\((\d+)"
)
"""`jax.pmap` maps an axis that is so many times as long as there are devices.

JAX hides its own frames, so that the statements have to name `pmap`.
"""
_NO_ELEMENT = "list index out of range"
"""`[jax.devices()[i] for i in range(4)]`, or a mesh of `jax.device_count() // 4` by 4: the number
is doubled until there are enough.
"""
_COUNT = r"(?:\blen\(\s*(?:jax\.)?(?:local_)?devices\([^()]*\)\s*\)|\b(?:local_)?device_count\(\))"
READS_DEVICES = re.compile(r"\b(?:local_)?devices\(|device_count\(")
_COUNTED = re.compile(rf"\b(\w+)\s*=\s*(?:jax\.)?{_COUNT}\s*(?:#.*)?$", re.MULTILINE)
"""`n = jax.device_count()`, a name that a condition may compare."""
_OWN_CHECKS = (AssertionError, RuntimeError, ValueError, SystemExit)
"""What programs raise that count the devices themselves."""


@dataclass(frozen=True, slots=True)
class Need:
    """What an error asks for: `size` devices instead of `present`, or `size` times as many.

    `present` is -1 in the latter case, and 0 for `size` devices instead of any number.
    """

    size: int
    present: int = -1
    is_guess: bool = False
    """Whether it may need more than that, or less."""

    def count(self, present: int, most: int) -> int:
        """Return the number of devices to have instead of `present`, 0 if it is about others.

        Args:
            most: the maximum if the error does not say how many it asks for.
        """
        if self.present < 0:
            count = self.size * present
            return count if count <= most else 0
        return self.size if self.is_about(present) else 0

    def is_about(self, present: int) -> bool:
        """Return whether it may be about so many devices."""
        return self.present in (-1, 0, present)


def needs(error: BaseException, texts: Sequence[str]) -> list[Need]:
    """Return what an error and its causes ask for.

    Args:
        error: what the code raised.
        texts: its statements.
    """
    return [need for each in _causes(error) if (need := _need(each, texts)) is not None]


def _need(error: BaseException, texts: Sequence[str]) -> Need | None:
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - user code: the class's __str__
        return None
    for pattern in (_MESH, _RESHAPED):
        if (match := pattern.search(message)) is not None:
            size = math.prod(_sizes(match[2]))
            if size == 0 and pattern is _MESH:
                return Need(_MORE, is_guess=True)  # `jax.device_count() // 2`
            return Need(size, int(match[1]))
    if (match := _MAPPED.search(message)) is not None and any("pmap" in text for text in texts):
        return Need(_sizes(match[1])[int(match[2])])
    if isinstance(error, IndexError) and message == _NO_ELEMENT:
        line = _line(_innermost(error))
        return Need(_MORE, is_guess=True) if READS_DEVICES.search(line) is not None else None
    if isinstance(error, _OWN_CHECKS):
        return _checked(error, texts)
    return None


def _checked(error: BaseException, texts: Sequence[str]) -> Need | None:
    """Return the number that a failed condition of the program compares with that of devices.

    The condition is on the line that raised the error, or on one of the lines before it.
    """
    frame = _innermost(error)
    if frame is None:
        return None
    names = [match[1] for text in texts for match in _COUNTED.finditer(text)]
    counted = "|".join([rf"(?:jax\.)?{_COUNT}", *(rf"\b{name}\b" for name in dict.fromkeys(names))])
    compared = re.compile(
        rf"(?:{counted})\s*(?P<after>==|!=|>=|<=|<|>|%)\s*(?P<number>\d+)\b"
        rf"|\b(?P<first>\d+)\s*(?P<before>==|!=|>=|<=|<|>)\s*(?:{counted})"
    )
    for back in range(_CONDITION_LINES):
        line = _line(frame, back)
        # Only the line itself may be an `assert`; above a `raise`, an `if` decides.
        if back and not line.lstrip().startswith("if "):
            continue
        if (match := compared.search(line)) is not None:
            sign = match["after"] or _MIRRORED.get(match["before"], match["before"])
            number = int(match["number"] or match["first"])
            asserted = line.lstrip().startswith("assert")
            return Need(number + (sign in (_ABOVE if asserted else _NOT_ABOVE)), 0)
    return None


_CONDITION_LINES = 4
"""Lines above a `raise` that are searched for its condition; farther ones are of others."""
_ABOVE, _NOT_ABOVE = (">", "!="), ("<=", "==")
"""Signs of an assertion, and of the condition of a `raise`, that ask for more than the number."""
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _innermost(error: BaseException) -> TracebackType | None:
    """Return the innermost frame outside of JAX that raised an error."""
    innermost, trace = None, error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if Path(jax.__file__).parent not in Path(file).parents:
            innermost = trace
        trace = trace.tb_next
    return innermost


def _line(trace: TracebackType | None, back: int = 0) -> str:
    """Return the text of a frame's line, or of one that is `back` lines above."""
    if trace is None:
        return ""
    return linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno - back)


def _sizes(shape: str) -> list[int]:
    """Return the sizes of a shape in a message, without `newaxis`, which is -1."""
    return [int(size) for size in re.findall(r"\d+", shape)]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it."""
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__
