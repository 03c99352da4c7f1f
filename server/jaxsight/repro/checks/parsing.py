"""Reads the text of a check."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from jaxsight.repro.checks import compiled, endings, outside, values
from jaxsight.repro.checks.base import Check, InvalidCheck

_LIMITED: dict[str, Callable[[str, str], Check]] = {
    "compile-time": compiled.compile_time,
    "compile-memory": compiled.compile_memory,
    "temp": compiled.temporaries,
    "retraces": outside.retraces,
}

KINDS = (
    "exception[:REGEX]",
    "crash[:SIGNAL]",
    "hang[:SECONDS]",
    "nan",
    "differs:jit,eager",
    "differs:FLAGS",
    "differs:PYTHON",
    "gradient",
    "compile-time>S",
    "compile-memory>BYTES",
    "temp>BYTES",
    "kernels:TARGET>N",
    "hlo:TARGET:REGEX",
    "retraces>N",
    "command:SCRIPT",
)
"""The forms of checks, as help texts show them."""


def parse(text: str) -> Check:
    """Read a check, such as `crash:SIGSEGV` or `temp>64MiB`; empty text is any failure.

    Raises:
        InvalidCheck: the text is invalid.
    """
    text = text.strip()
    if not text:
        return Check(text)
    kind, colon, rest = text.partition(":")
    if not colon or ">" in kind:
        name, greater, limit = text.partition(">")
        if greater and name.strip() in _LIMITED:
            return _LIMITED[name.strip()](text, limit)
    match kind:
        case "nan" | "gradient" if not colon:
            return values.nan(text) if kind == "nan" else values.gradient(text)
        case "exception":
            return endings.raises(text, rest)
        case "crash":
            return endings.crashes(text, rest)
        case "hang":
            return endings.hangs(text, rest)
        case "differs":
            return _differs(text, rest.strip())
        case "kernels" | "hlo":
            return _of_target(text, kind, rest)
        case "command" if rest:
            return outside.script(text, rest)
    raise InvalidCheck(_unknown(text, kind.partition(">")[0]))


def _of_target(text: str, kind: str, rest: str) -> Check:
    """Read `kernels:TARGET>N` or `hlo:TARGET:REGEX`."""
    separator = ">" if kind == "kernels" else ":"
    target, _, limit = rest.partition(separator)
    if not limit:
        raise InvalidCheck(_unknown(text, kind))
    of_target = compiled.kernels if kind == "kernels" else compiled.hlo
    return of_target(text, target.strip(), limit)


def _differs(text: str, between: str) -> Check:
    if between == "jit,eager":
        return values.differs_eagerly(text)
    if between.startswith("--"):
        return values.differs_by_flags(text, between)
    if python := shutil.which(between):
        return values.differs_elsewhere(text, python)
    expected = "differs:jit,eager, differs:FLAGS or differs:PYTHON"
    raise InvalidCheck(f"invalid check {text!r}; expected {expected}")


def _unknown(text: str, name: str) -> str:
    forms = [form for form in KINDS if form.partition(":")[0].partition(">")[0] == name]
    if forms:
        return f"invalid check {text!r}; expected {' or '.join(forms)}"
    names = sorted({form.replace("[", ":").replace(">", ":").partition(":")[0] for form in KINDS})
    return f"unknown check {text!r}; expected one of {', '.join(names)}"
