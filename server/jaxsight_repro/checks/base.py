"""A check, and how the kinds of checks compare failures."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from jaxsight.targets.target import CPU, UnknownTarget
from jaxsight.targets.target import parse as parse_target
from jaxsight_repro.checks import demonstrations
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


_UNITS = {"": 1, "b": 1} | {
    f"{prefix}{suffix}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for suffix, base in (("", 1024), ("b", 1000), ("ib", 1024))
}


def _asserts(
    demonstration: str,
    prefix: str,
    *,
    finite: bool = False,
    of_text: bool = False,
    **filled: object,
) -> Asserts:
    for name, value in filled.items():
        demonstration = demonstration.replace(f"{{{name}}}", repr(value))
    lines = tuple(demonstration.splitlines())
    return Asserts("", lines, finite=finite, of_text=of_text, prefix=prefix)


def _above(
    demonstration: str, prefix: str, read: Callable[[str], float], *, of_text: bool = False
) -> Callable[[str], Asserts]:
    """Return how a check is made whose demonstration compares a figure with a limit."""
    return lambda limit: _asserts(demonstration, prefix, of_text=of_text, limit=read(limit))


def _crashes(name: str | None) -> Check:
    if not name:
        return Crashes()
    wanted = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    if wanted not in signal.Signals.__members__:
        raise InvalidCheck(f"unknown signal {name!r}; expected a name such as SIGSEGV")
    return Crashes(signal=wanted)


def _differs_by_flags(flags: str) -> Check:
    """Return the check that XLA's flags, which become compiler options, change results."""
    if not flags.strip().startswith("--"):
        raise _Unmatched
    options: dict[str, str | bool] = {}
    for flag in flags.split():
        name, equals, value = flag.partition("=")
        if not re.fullmatch(r"--xla_\w+", name):
            raise InvalidCheck(f"invalid XLA flag {flag!r}; expected --xla_NAME=VALUE")
        truth = {"true": True, "false": False}
        options[name[2:]] = truth.get(value.lower(), value) if equals else True
    source = demonstrations.BY_FLAGS.replace("{options}", repr(options))
    return ResultsDiffer(prefix="results depend on flags", source=source).requiring(0)


def _differs_elsewhere(python: str) -> Check:
    path = shutil.which(python.strip())
    if path is None:
        raise _Unmatched
    source = demonstrations.ELSEWHERE.replace("{python}", repr(path))
    prefix = "results depend on the environment"
    return ResultsDiffer(as_file=True, prefix=prefix, source=source).requiring(0)


def _kernels(target: str, limit: str) -> Check:
    chosen, most = _target(target), _count(limit)
    if chosen == CPU:
        return _asserts(demonstrations.KERNELS, "compiled to ", limit=most)
    return _asserts(demonstrations.KERNELS_FOR, "compiled to ", target=chosen, limit=most)


def _hlo(target: str, pattern: str) -> Check:
    parts = f"{target}:{pattern}".split(":")
    # The longest target: `cuda:h100:fusion` looks for `fusion`, `cpu:f32` for `f32`.
    known = [n for n in range(1, len(parts)) if _is_target(":".join(parts[:n]))]
    length = max(known, default=1)
    chosen, wanted = _target(":".join(parts[:length])), _pattern(":".join(parts[length:]))
    if chosen == CPU:
        return _asserts(demonstrations.HLO, "the HLO matches", pattern=wanted)
    return _asserts(demonstrations.HLO_FOR, "the HLO matches", target=chosen, pattern=wanted)


def _script(path: str) -> Check:
    found = shutil.which(path) or path
    if not Path(found).is_file():
        raise InvalidCheck(f"script {path!r} does not exist")
    return Script(of_text=True, script=Path(found).resolve())


def _is_target(text: str) -> bool:
    with contextlib.suppress(UnknownTarget):
        return bool(parse_target(text))
    return False


def _target(text: str) -> str:
    """Read a target on this machine, such as `cpu` or `cuda:h100`."""
    try:
        target = parse_target(text)
    except UnknownTarget as error:
        raise InvalidCheck(f"{error.message}; {error.help}") from None
    if target.host:
        raise InvalidCheck(f"unsupported target {text.strip()!r}; expected one without a host")
    return target.name


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise InvalidCheck(f"invalid regular expression {text!r}: {error}") from None
    return text


def _seconds(text: str) -> float:
    """Read a positive number of seconds."""
    try:
        value = float(text.removesuffix("s").strip())
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise InvalidCheck(f"invalid time {text!r}; expected seconds, such as 2.5")
    return value


def _size(text: str) -> int:
    """Read a number of bytes, such as `65536`, `64KiB` or `1.5 GB`."""
    amount = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if amount is None or amount[2].lower() not in _UNITS:
        raise InvalidCheck(f"invalid size {text!r}; expected bytes, such as 64MiB")
    return int(float(amount[1]) * _UNITS[amount[2].lower()])


def _count(text: str) -> int:
    """Read a whole number that is not negative."""
    if not re.fullmatch(r"\s*\d+\s*", text):
        raise InvalidCheck(f"invalid number {text!r}; expected a whole number, such as 10")
    return int(text)


class _Unmatched(Exception):
    """What stands in a form's place is nothing that the form takes."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of checks.

    Attributes:
        text: as help texts show it. Capital letters stand for what the user writes, and what is in
            brackets may be missing.
        make: returns the check for what the user wrote; None for what is missing.
    """

    text: str
    make: Callable[..., Check]

    @property
    def name(self) -> str:
        """The word that it begins with."""
        return _name_of(self.text)

    @property
    def pattern(self) -> str:
        """The regular expression of its texts."""
        written = self.text.replace("[", "(?:").replace("]", ")?").replace(">", r"\s*>")
        return re.sub("[A-Z]+", "(.*?)" if "[" in self.text else "(.+?)", written)


FORMS = (
    Form("exception[:REGEX]", lambda pattern: Raises(pattern=_pattern(pattern or ""))),
    Form("crash[:SIGNAL]", _crashes),
    Form("hang[:SECONDS]", lambda limit: Hangs(seconds=_seconds(limit) if limit else None)),
    Form("nan", lambda: _asserts(demonstrations.NAN, "NaN in ", finite=True)),
    Form(
        "differs:jit,eager",
        lambda: ResultsDiffer(
            eager=True, prefix="jit and eager differ", source=demonstrations.EAGERLY
        ).requiring(0),
    ),
    Form("differs:FLAGS", _differs_by_flags),
    Form("differs:PYTHON", _differs_elsewhere),
    Form(
        "gradient",
        lambda: _asserts(demonstrations.GRADIENT, "gradient and finite differences differ"),
    ),
    Form("compile-time>S", _above(demonstrations.COMPILE_TIME, "compiled in ", _seconds)),
    Form("compile-memory>BYTES", _above(demonstrations.COMPILE_MEMORY, "compiling took ", _size)),
    Form("temp>BYTES", _above(demonstrations.TEMPORARIES, "temporaries of ", _size)),
    Form("kernels:TARGET>N", _kernels),
    Form("hlo:TARGET:REGEX", _hlo),
    Form("retraces>N", _above(demonstrations.RETRACES, "traced ", _count, of_text=True)),
    Form("command:SCRIPT", _script),
)


def parse(text: str) -> Check:
    """Read a check, such as `crash:SIGSEGV` or `temp>64MiB`; empty text is any failure.

    Raises:
        InvalidCheck: the text is invalid.
    """
    text = text.strip()
    if not text:
        return Check()
    for form in FORMS:
        if match := re.fullmatch(form.pattern, text, re.DOTALL):
            try:
                return replace(form.make(*match.groups()), text=text)
            except _Unmatched:
                continue
    if forms := [form.text for form in FORMS if form.name == _name_of(text)]:
        expected = " or ".join([", ".join(forms[:-1]), forms[-1]] if forms[1:] else forms)
        raise InvalidCheck(f"invalid check {text!r}; expected {expected}")
    names = sorted({form.name for form in FORMS})
    raise InvalidCheck(f"unknown check {text!r}; expected one of {', '.join(names)}")


def _name_of(text: str) -> str:
    return re.split(r"[\[:>]", text)[0].strip()
