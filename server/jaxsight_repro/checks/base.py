"""A check, and how the kinds of checks compare failures."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from jaxsight_repro.failures import CRASH, EXCEPTION, FINISHED, HANG, RunFailure

CALL = ("jax.block_until_ready(main(*inputs()))",)
"""The demonstration of a program that fails by itself."""

_ORDER = re.compile(r"is (?:larger|smaller) .*")
_AMOUNT = re.compile(r"relative difference ([-+.\de]+)")


class InvalidCheck(ValueError):
    """The text of a check is invalid; the error's text says what is expected."""


@dataclass(frozen=True, slots=True)
class Check:
    """A kind of failure. By default, any failure.

    Attributes:
        text: the check as `--check` takes it.
        demonstration: the lines that a repro runs as a script.
        seconds: the time after which a run counts as a hang; None for the caller's limit.
        of_text: whether statements are reduced, and not the equations of a program.
        as_file: whether the demonstration needs the file that it is in.
        finite: whether only programs with finite arguments count.
        eager: whether the demonstration also runs the program under `jax.disable_jit`.
    """

    text: str = ""
    demonstration: tuple[str, ...] = CALL
    seconds: float | None = None
    of_text: bool = False
    as_file: bool = False
    finite: bool = False
    eager: bool = False
    are_alike: ClassVar[bool] = False
    """Whether all failures for which it `holds` are the same."""

    def lines(self, jitted: bool) -> tuple[str, ...]:
        """Return the demonstration for `main`, or for `jax.jit(main)`."""
        if not jitted or any("jax.jit(main" in line for line in self.demonstration):
            return self.demonstration
        return tuple(line.replace("main(*", "jax.jit(main)(*") for line in self.demonstration)

    def holds(self, failure: RunFailure) -> bool:
        """Return whether a program that fails like this does what the check names."""
        return failure.kind != FINISHED

    def same(self, failure: RunFailure, expected: RunFailure) -> bool:
        """Return whether a failure is the expected one, and not another that `holds` as well."""
        return self.holds(failure) and (self.are_alike or failure.same(expected))

    def calibrated(self, expected: RunFailure) -> Self:
        """Return the check with thresholds that fit the failure of the original program."""
        del expected
        return self


@dataclass(frozen=True, slots=True)
class Asserts(Check):
    """The demonstration raises an `AssertionError` that begins with `prefix`."""

    prefix: str = ""

    def holds(self, failure: RunFailure) -> bool:
        """Return whether the demonstration raised its error."""
        is_assertion = failure.kind == EXCEPTION and failure.name == "AssertionError"
        return is_assertion and failure.message.startswith(self.prefix)


@dataclass(frozen=True, slots=True)
class ResultsDiffer(Asserts):
    """The results of two ways to run a program differ by more than rounding.

    The demonstration is `source` with a relative difference in place of `{least}`.
    """

    source: str = ""

    def same(self, failure: RunFailure, expected: RunFailure) -> bool:
        """Return whether results differ, and whether NaN is on the same side.

        Which results are larger depends on what is computed from them.
        """
        one, other = (
            replace(each, message=_ORDER.sub("differs", each.message))
            for each in (failure, expected)
        )
        return self.holds(failure) and one.same(other)

    def calibrated(self, expected: RunFailure) -> Self:
        """Require a tenth of the original's difference, so that rounding errors do not count."""
        amount = _AMOUNT.search(expected.message)
        return self.requiring(min(float(amount[1]), 0.1) / 10 if amount else 0.0)

    def requiring(self, least: float) -> Self:
        """Return the check of differences of at least so much, relative to the largest result."""
        lines = self.source.replace("{least}", f"{least:.1e}" if least else "0").splitlines()
        return replace(self, demonstration=tuple(lines))


@dataclass(frozen=True, slots=True)
class Raises(Check):
    """The program raises an exception; its class and message match `pattern`, if there is one."""

    pattern: str = ""

    def holds(self, failure: RunFailure) -> bool:
        """Return whether the program raised a matching exception."""
        text = f"{failure.name}: {failure.message}"
        return failure.kind == EXCEPTION and re.search(self.pattern, text) is not None

    def same(self, failure: RunFailure, expected: RunFailure) -> bool:
        """Return whether it is the expected exception; the message may vary within a pattern."""
        if self.pattern and self.holds(failure):
            return failure.name == expected.name
        return self.holds(failure) and failure.same(expected)


@dataclass(frozen=True, slots=True)
class Crashes(Check):
    """The program's process is killed by a signal."""

    signal: str = ""

    def holds(self, failure: RunFailure) -> bool:
        """Return whether the signal killed the process."""
        return failure.kind == CRASH and self.signal in ("", failure.name)


@dataclass(frozen=True, slots=True)
class Hangs(Check):
    """The program does not finish within `seconds`; all hangs are the same."""

    are_alike = True

    def holds(self, failure: RunFailure) -> bool:
        """Return whether the process was killed for taking too long."""
        return failure.kind == HANG


@dataclass(frozen=True, slots=True)
class Script(Check):
    """A script alone decides: it gets a candidate's path, and exits with 0 if interesting."""

    script: Path = Path()
    are_alike = True

    def holds(self, failure: RunFailure) -> bool:
        """Return whether the script exited with 0."""
        return failure.kind == FINISHED
