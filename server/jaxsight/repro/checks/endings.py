"""Programs that end in an error: an exception, a signal, or not at all."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from jaxsight.repro.checks.base import Check, InvalidCheck
from jaxsight.repro.failures import CRASH, EXCEPTION, HANG, Failure


@dataclass(frozen=True, slots=True)
class Raises(Check):
    """The program raises an exception; its class and message match `pattern`, if there is one."""

    pattern: str = ""

    def holds(self, failure: Failure) -> bool:
        """Return whether the program raised a matching exception."""
        text = f"{failure.name}: {failure.message}"
        return failure.kind == EXCEPTION and re.search(self.pattern, text) is not None

    def same(self, failure: Failure, expected: Failure) -> bool:
        """Return whether it is the expected exception; the message may vary within a pattern."""
        if self.pattern and self.holds(failure):
            return failure.name == expected.name
        return self.holds(failure) and failure.same(expected)


@dataclass(frozen=True, slots=True)
class Crashes(Check):
    """The program's process is killed by a signal."""

    signal: str = ""

    def holds(self, failure: Failure) -> bool:
        """Return whether the signal killed the process."""
        return failure.kind == CRASH and self.signal in ("", failure.name)


@dataclass(frozen=True, slots=True)
class Hangs(Check):
    """The program does not finish within `seconds`."""

    def holds(self, failure: Failure) -> bool:
        """Return whether the process was killed for taking too long."""
        return failure.kind == HANG

    def same(self, failure: Failure, expected: Failure) -> bool:
        """Return whether it is a hang: all of them are the same."""
        del expected
        return self.holds(failure)


def raises(text: str, pattern: str) -> Check:
    """Return the check `exception[:REGEX]`."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidCheck(f"invalid regular expression {pattern!r}: {error}") from None
    return Raises(text, pattern=pattern)


def crashes(text: str, name: str) -> Check:
    """Return the check `crash[:SIGNAL]`."""
    names = {each.name for each in signal.Signals}
    wanted = name.upper() if name.upper().startswith("SIG") or not name else f"SIG{name.upper()}"
    if wanted and wanted not in names:
        raise InvalidCheck(f"unknown signal {name!r}; expected a name such as SIGSEGV")
    return Crashes(text, signal=wanted)


def hangs(text: str, limit: str) -> Check:
    """Return the check `hang[:SECONDS]`."""
    return Hangs(text, seconds=seconds(limit) if limit else None)


def seconds(text: str) -> float:
    """Read a positive number of seconds."""
    try:
        value = float(text.removesuffix("s").strip())
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise InvalidCheck(f"invalid time {text!r}; expected seconds, such as 2.5")
    return value
