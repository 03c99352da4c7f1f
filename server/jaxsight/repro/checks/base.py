"""What all checks have in common."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.repro.failures import EXCEPTION, FINISHED, Failure

CALL = ("jax.block_until_ready(main(*inputs()))",)
"""The demonstration of a program that fails by itself."""


class InvalidCheck(ValueError):
    """The text of a check is invalid; the error's text says what is expected."""


@dataclass(frozen=True, slots=True)
class Check:
    """A kind of failure. By default, any failure.

    Attributes:
        text: the check as `--check` takes it.
        demonstration: the lines that a repro runs as a script.
        seconds: the time after which a run counts as a hang; None for the caller's limit.
        level: what is reduced: `program` for equations, `text` for statements.
        as_file: whether the demonstration needs the file that it is in.
        finite: whether only programs with finite arguments count.
        eager: whether the demonstration also runs the program under `jax.disable_jit`.
    """

    text: str
    demonstration: tuple[str, ...] = CALL
    seconds: float | None = None
    level: str = "program"
    as_file: bool = False
    finite: bool = False
    eager: bool = False

    def lines(self, jitted: bool) -> tuple[str, ...]:
        """Return the demonstration for `main`, or for `jax.jit(main)`."""
        if not jitted or any("jax.jit(main" in line for line in self.demonstration):
            return self.demonstration
        return tuple(line.replace("main(*", "jax.jit(main)(*") for line in self.demonstration)

    def holds(self, failure: Failure) -> bool:
        """Return whether a program that fails like this does what the check names."""
        return failure.kind != FINISHED

    def same(self, failure: Failure, expected: Failure) -> bool:
        """Return whether a failure is the expected one, and not another that `holds` as well."""
        return self.holds(failure) and failure.same(expected)

    def calibrated(self, expected: Failure) -> Check:
        """Return the check with thresholds that fit the failure of the original program."""
        del expected
        return self


@dataclass(frozen=True, slots=True)
class Assertion(Check):
    """A check whose demonstration raises an `AssertionError` that begins with `prefix`."""

    prefix: str = ""

    def holds(self, failure: Failure) -> bool:
        """Return whether the demonstration raised its error."""
        return (
            failure.kind == EXCEPTION
            and failure.name == "AssertionError"
            and failure.message.startswith(self.prefix)
        )
