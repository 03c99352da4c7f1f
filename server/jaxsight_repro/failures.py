"""How a program failed, and whether two failures are the same.

A **signature** is what two runs of the same failure share: the kind, the class of the exception or
the signal, the message without what varies between runs and sizes, and the function of JAX in
which it arose. Addresses, numbers, shapes and names of values are not part of it.
"""

from __future__ import annotations

import builtins
import re
import signal
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Final, Literal, TypeAlias

FailureKind: TypeAlias = Literal["finished", "exception", "crash", "hang", "memory", "processes"]

FINISHED: Final = "finished"
EXCEPTION: Final = "exception"
CRASH: Final = "crash"
HANG: Final = "hang"
MEMORY: Final = "memory"
PROCESSES: Final = "processes"

_VARIABLE = (
    (re.compile(r"0x[0-9a-fA-F]+"), "@"),
    (re.compile(r"\bfunction \S+ at [^\s:]+:\d+"), "function"),
    (re.compile(r"[\w./<>+-]+\.py:\d+"), "place"),
    (re.compile(r"\b(?:[a-z]+\d+|bool|key<\w+>)\[[^\]]*\](?:\{[^}]*\})?"), "array"),
    (re.compile(r"\((?:\s*\d+\s*,?)+\)|\[(?:\s*\d+\s*,?)+\]"), "sizes"),
    (re.compile(r"[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?"), "#"),
    (re.compile(r"(?:/[\w.<>+-]+)+"), "path"),
    (re.compile(r"%[\w.-]+"), "%"),
    (re.compile(r"\s+"), " "),
)
"""What varies in messages between runs, machines and sizes, with its replacement."""

_PLACE = re.compile(r'  File "([^"]*)", line')
"""The line of a traceback that names a file."""

LONGEST_MESSAGE = 4000
"""Characters, chosen: GitHub refuses an issue of more than 65,536, and most are the program's."""
HANG_AFTER = 60.0
"""Seconds after which a candidate of the reducer is a hang, chosen: less drops slow compiles."""
_LONGEST = 300
"""Characters of a message that are compared, a choice: later ones list shapes and operands, which a
smaller program does not have."""


class NoRepro(Exception):
    """There is nothing to write; the text says why, and `help` what to do."""

    def __init__(self, words: str, help: str = "") -> None:
        super().__init__(words)
        self.help = help


@dataclass(frozen=True, slots=True)
class RunFailure:
    """How a run ended.

    Attributes:
        name: the qualified name of the exception's class, or the signal's.
        message: the exception's message.
        frame: the innermost function in the traceback, as `module:function`, if it is of JAX.
    """

    kind: FailureKind
    name: str = ""
    message: str = ""
    frame: str = ""

    @property
    def signature(self) -> tuple[str, str, str, str]:
        """The parts that all runs of the same failure share.

        Of other kinds than exceptions, the message says how long or how much, which is not shared.
        """
        message = normalized(self.message) if self.kind == EXCEPTION else ""
        return (self.kind, self.name, message, self.frame)

    def same(self, other: RunFailure) -> bool:
        """Return whether this is the same failure, up to what varies between runs."""
        return self.signature == other.signature

    @property
    def headline(self) -> str:
        """The failure in one line."""
        first = _without_traceback(self.message.strip()).split("\n", 1)[0]
        match self.kind:
            case "exception":
                name = self.name.rpartition(".")[2]
                return f"{name}: {first}" if name and first else name or first
            case "crash":
                return f"killed by {self.name}"
            case "hang":
                return f"did not finish {first}".rstrip()
            case "memory":
                return f"exceeded its memory limit {first}".rstrip()
            case "processes":
                return "started too many processes"
            case _:
                return "finished"

    def record(self) -> dict[str, str]:
        """Return the failure as JSON, whose parts are the arguments of this class."""
        return asdict(self)


def failure_of(
    error: BaseException, ignored: Callable[[str], bool] = lambda file: False
) -> RunFailure:
    """Return the failure of a program that raised an error, as `running` reports it.

    Args:
        error: what was raised.
        ignored: returns whether a file's functions do not count as the program's.
    """
    if isinstance(error, SystemExit):
        return RunFailure(EXCEPTION, "SystemExit", str(error.code))
    cls = type(error)
    name = cls.__qualname__
    if cls.__module__ not in ("builtins", "__main__"):
        name = f"{cls.__module__}.{name}"
    message = _without_frames(str(error), ignored)
    return RunFailure(EXCEPTION, name, message, _frame(error.__traceback__, ignored))


def failure_of_exit(code: int) -> RunFailure:
    """Return how a process failed that ended with an exit status; negative for a signal."""
    if code < 0:
        return RunFailure(CRASH, signal_name(-code))
    return RunFailure(EXCEPTION, message=f"exit status {code}") if code else RunFailure(FINISHED)


def signal_name(number: int) -> str:
    """Return the name of a signal, such as `SIGSEGV`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def failure_in(action: Callable[[], object]) -> RunFailure:
    """Return how a call failed."""
    try:
        action()
    except BaseException as error:  # noqa: BLE001 - whatever a program raises
        return failure_of(error)
    return RunFailure(FINISHED)


def _frame(tb: TracebackType | None, ignored: Callable[[str], bool]) -> str:
    """Return the innermost function, as `module:function`, if it is of JAX."""
    frames = [frame for frame, _ in traceback.walk_tb(tb) if not ignored(frame.f_code.co_filename)]
    if not frames:
        return ""
    module = frames[-1].f_globals.get("__name__") or ""
    is_jax = module.partition(".")[0] in ("jax", "jaxlib")
    return f"{module}:{frames[-1].f_code.co_name}" if is_jax else ""


def normalized(message: str) -> str:
    """Return the first lines of a message without what varies between runs and sizes."""
    text = _without_traceback(message.strip())[: 4 * _LONGEST]
    for pattern, replacement in _VARIABLE:
        text = pattern.sub(replacement, text)
    return text[:_LONGEST].strip()


def _without_frames(message: str, ignored: Callable[[str], bool]) -> str:
    """Return a message without some frames of the traceback in it, as errors of callbacks have."""
    lines: list[str] = []
    is_ignored = False
    for line in message.split("\n"):
        place = _PLACE.match(line)
        is_ignored = ignored(place[1]) if place else is_ignored and line.startswith("    ")
        if not is_ignored:
            lines.append(line)
    return "\n".join(lines)


def _without_traceback(message: str) -> str:
    """Return a message without the lines of a traceback in it, as those of callbacks have."""
    before, traceback, after = message.partition("Traceback (most recent call last):")
    if not traceback:
        return message
    lines = [line for line in after.split("\n") if line and not line.startswith(" ")]
    return f"{before}{' '.join(lines[:1])}"


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that the user's code raised.

    Attributes:
        name: the qualified name of its class.
        module: the module of its class.
        base: the built-in class that its class is, or is derived from.
        args: what to construct it with.
        is_text: whether its text is its only argument, and not what `base` makes of it.
    """

    name: str
    module: str
    base: str
    args: tuple[object, ...]
    is_text: bool = False

    @property
    def is_builtin(self) -> bool:
        """Whether it is of a built-in class, which can be called as its arguments say."""
        return self.module == "builtins" and self.name == self.base and not self.is_text


def raised_of(error: BaseException) -> Raised:
    """Return an exception as plain data."""
    cls = type(error)
    text = str(error)
    for base in cls.__mro__:
        if base.__module__ != "builtins" or getattr(builtins, base.__name__, None) is not base:
            continue
        for args in (error.args, (text,)):
            made = _text_of(base, args)
            if made == text or (made is not None and args == (text,)):
                names = cls.__qualname__, cls.__module__, base.__name__
                return Raised(*names, args, is_text=made != text)
    return Raised(cls.__qualname__, cls.__module__, "Exception", (text,))


def _text_of(base: type, args: tuple[object, ...]) -> str | None:
    """Return the text of a built-in class's exception; None if it cannot be made or written."""
    if not all(isinstance(arg, (str, int, float, type(None))) for arg in args):
        return None
    try:
        return str(base(*args))
    except Exception:  # noqa: BLE001 - what its constructor raises
        return None
