"""The forms of checks, in one table, and how the text of a check is read."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from jaxsight.targets.target import CPU, UnknownTarget
from jaxsight.targets.target import parse as parse_target
from jaxsight_repro.checks import demonstrations
from jaxsight_repro.checks.base import (
    Asserts,
    Check,
    Crashes,
    Hangs,
    InvalidCheck,
    Raises,
    ResultsDiffer,
    Script,
)

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
    Form(
        "compile-time>S",
        lambda limit: _asserts(demonstrations.COMPILE_TIME, "compiled in ", limit=_seconds(limit)),
    ),
    Form(
        "compile-memory>BYTES",
        lambda limit: _asserts(
            demonstrations.COMPILE_MEMORY, "compiling took ", limit=_size(limit)
        ),
    ),
    Form(
        "temp>BYTES",
        lambda limit: _asserts(demonstrations.TEMPORARIES, "temporaries of ", limit=_size(limit)),
    ),
    Form("kernels:TARGET>N", _kernels),
    Form("hlo:TARGET:REGEX", _hlo),
    Form(
        "retraces>N",
        lambda limit: _asserts(
            demonstrations.RETRACES, "traced ", of_text=True, limit=_count(limit)
        ),
    ),
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
