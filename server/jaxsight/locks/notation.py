"""The notation of facts: one line for each function, in sections for targets and versions of JAX.

    [cpu on linux x86_64, jax 0.12.0]
    model.py:loss  kernels=2[reduction:512KiB output:4B]  launches=2  temp=512KiB  results=f32[]

Fields are separated by two spaces, and those that are zero or empty are left out. Amounts are
exact, in the largest unit that divides them. A user may write a tolerance after a number:
`temp=512KiB~5%`, `kernels=2~1`; it is kept when the line is written again.

Lines come from files of a workspace: reading them trusts nothing.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from jaxsight.locks.facts import (
    CollectiveFact,
    ConstantFact,
    DtypeFact,
    KernelFact,
    LoopFact,
    ProgramFacts,
    exact,
    read_amount,
)
from jaxsight.targets.target import Target
from jaxsight.text import units

VERSION = 1
"""The format of a lock, in its first line."""
_FIRST = (
    f"# jaxsight.lock, format {VERSION}: what functions compile to. `jaxsight lock` writes it.\n"
)
_SECTION = re.compile(r"\[(?P<target>[^,\]]+), jax (?P<jax>[^,\]\s]+)\]")
_NUMBER = re.compile(r"(?P<value>[^\[\]~]+)(?:\[(?P<items>[^\]]*)\])?(?:~(?P<tolerance>\S+))?")
_PLAIN = re.compile(r"(?![\[#\"])(?:[^\s\x00-\x1f]| (?! ))+")


_ON = " on "
_HERE = f"{_ON}{platform.system()} {platform.machine()}".lower()


class LockError(Exception):
    """A lock that cannot be read; the message has the line and the reason."""


@dataclass(frozen=True, slots=True, order=True)
class LockSection:
    """What the functions of a section are compiled for, and with which JAX."""

    target: str
    """`cuda:h100`; the machine's own CPU is `cpu on linux x86_64`, as XLA knows several."""
    jax: str

    @staticmethod
    def of(target: Target, jax: str) -> LockSection:
        """Return the section of a target on this machine."""
        return LockSection(f"{target.name}{_HERE if target.is_here else ''}", jax)

    @property
    def target_name(self) -> str:
        """The name of the target; empty if it is the device of another machine."""
        name, on, _ = self.target.partition(_ON)
        return name if not on or self.target == f"{name}{_HERE}" else ""

    def __str__(self) -> str:
        return f"{self.target}, jax {self.jax}"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may be from the locked one: a share of it, or an amount."""

    text: str
    share: float = 0.0
    amount: int = 0

    @staticmethod
    def parse(text: str) -> Tolerance:
        """Read `5%`, `2` or `64KiB`.

        Raises:
            ValueError: it is none of these.
        """
        if text.endswith("%"):
            return Tolerance(text, share=float(text[:-1]) / 100)
        if (amount := units.parse_size(text)) is None:
            raise ValueError(f"invalid tolerance {text!r}: expected e.g. 5%, 2 or 64KiB")
        return Tolerance(text, amount=int(amount))

    def allows(self, before: int, after: int) -> bool:
        """Return whether a number is near enough to the locked one."""
        return abs(after - before) <= max(self.amount, self.share * before)


@dataclass(frozen=True, slots=True)
class LockedFunction:
    """A line of a lock: facts, and the tolerances that the user wrote, by key."""

    facts: ProgramFacts
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)


@dataclass(slots=True)
class ProjectLock:
    """The functions of a lock by section and name (`src/model.py:loss`)."""

    sections: dict[LockSection, dict[str, LockedFunction]] = field(default_factory=dict)

    def put(self, section: LockSection, name: str, facts: ProgramFacts) -> None:
        """Set the facts of a function; the tolerances of its line stay."""
        functions = self.sections.setdefault(section, {})
        functions[name] = replace(functions.get(name, LockedFunction(facts)), facts=facts)

    def text(self) -> str:
        """Return the text of the lock: sections and functions in alphabetical order."""
        blocks = [_FIRST]
        for section in sorted(self.sections):
            functions = self.sections[section]
            lines = [f"[{section}]\n"]
            lines += [f"{line_of(name, functions[name])}\n" for name in sorted(functions)]
            if functions:
                blocks.append("".join(lines))
        return "\n".join(blocks)


class _Numbered(NamedTuple):
    """A field that is a number: its key, its name in `ProgramFacts`, whether it is in bytes."""

    key: str
    name: str
    is_bytes: bool


NUMBERS = (
    _Numbered("launches", "launches", is_bytes=False),
    _Numbered("temp", "temporaries", is_bytes=True),
    _Numbered("args", "arguments", is_bytes=True),
    _Numbered("out", "outputs", is_bytes=True),
    _Numbered("traffic", "traffic", is_bytes=True),
    _Numbered("moved", "moved", is_bytes=True),
    _Numbered("host", "host", is_bytes=True),
    _Numbered("callbacks", "callbacks", is_bytes=False),
    _Numbered("unused-donations", "not_reused", is_bytes=False),
    _Numbered("devices", "devices", is_bytes=False),
    _Numbered("equations", "equations", is_bytes=False),
)
_NUMBERS = {each.key: each for each in NUMBERS}
_DEFAULTS = {"devices": 1, "launches": -1, "temp": -2}
"""Values that are not written, where that is not 0; the first figures always are."""
_TEXTS = ("inputs", "origin", "results", "program")
_LISTS: Mapping[str, Callable[[str], object]] = {
    "kernels": KernelFact.parse,
    "collectives": CollectiveFact.parse,
    "constants": ConstantFact.parse,
    "loops": LoopFact.parse,
    "dtypes": DtypeFact.parse,
}
_MOST = 100_000
"""Items of a list, more than programs have kernels: a line could otherwise fill the memory."""


def line_of(name: str, function: LockedFunction) -> str:
    """Return the line of a function."""
    facts, tolerances = function.facts, function.tolerances
    fields = [("kernels", f"{len(facts.kernels)}{_list(facts.kernels)}")]
    fields += [
        (each.key, exact(value) if each.is_bytes else str(value))
        for each in NUMBERS
        if (value := getattr(facts, each.name)) != _DEFAULTS.get(each.key, 0)
    ]
    for key in ("collectives", "constants", "loops", "dtypes"):
        if items := getattr(facts, key):
            is_sum = key == "constants"
            total = exact(sum(each.bytes for each in items)) if is_sum else str(len(items))
            fields.append((key, f"{total}{_list(items)}"))
    fields += [(key, text) for key in _TEXTS if (text := getattr(facts, key))]
    written = [
        f"{key}={value}" + (f"~{tolerances[key].text}" if key in tolerances else "")
        for key, value in fields
    ]
    return "  ".join([name if _PLAIN.fullmatch(name) else json.dumps(name), *written])


def _list(items: Iterable[object]) -> str:
    """Return `[a b*3]`: equal items that follow each other, with their number."""
    numbers = [(item, len(list(same))) for item, same in groupby(map(str, items))]
    texts = [f"{item}*{number}" if number > 1 else item for item, number in numbers]
    return f"[{' '.join(texts)}]" if texts else ""


def parse(text: str) -> ProjectLock:
    """Read a lock.

    Raises:
        LockError: it is not one, or is of another format.
    """
    lock, functions = ProjectLock(), None
    for number, raw in enumerate(text.splitlines() or [""], 1):
        line = raw.strip()
        if number == 1 and f"format {VERSION}:" not in line:
            raise LockError(f"line 1: not a lock of format {VERSION}")
        if not line or line.startswith("#"):
            continue
        if (match := _SECTION.fullmatch(line)) is not None:
            functions = lock.sections.setdefault(LockSection(match["target"], match["jax"]), {})
            continue
        if functions is None:
            raise LockError(f"line {number}: a function before the first section")
        try:
            name, function = read_line(line)
        except ValueError as error:
            raise LockError(f"line {number}: {error}") from error
        functions[name] = function
    return lock


def read_line(line: str) -> tuple[str, LockedFunction]:
    """Return the name and the facts of a line.

    Raises:
        ValueError: a field is unknown or malformed; the message says which.
    """
    name, end = line.partition("  ")[0], line.find("  ")
    if line.startswith('"'):
        name, end = json.JSONDecoder().raw_decode(line)
    read: dict[str, object] = {}
    tolerances: dict[str, Tolerance] = {}
    for text in re.split(r" {2,}", line[end:].strip() if end >= 0 else ""):
        key, equals, value = text.partition("=")
        number = _NUMBER.fullmatch(value)
        if not equals:
            raise ValueError(f"expected key=value, got {text!r}")
        if key in _TEXTS:
            read[key] = value
        elif number is None or key not in (*_NUMBERS, *_LISTS):
            raise ValueError(f"invalid field {text!r}")
        elif key in _NUMBERS:
            read[_NUMBERS[key].name] = read_amount(number["value"])
        else:
            read[key] = tuple(map(_LISTS[key], _items(number["items"] or "")))
        if number is not None and number["tolerance"] and key not in _TEXTS:
            tolerances[key] = Tolerance.parse(number["tolerance"])
    facts: Callable[..., ProgramFacts] = ProgramFacts
    return name, LockedFunction(facts(**read), tolerances)


def _items(text: str) -> Iterator[str]:
    total = 0
    for part in text.split():
        item, star, number = part.partition("*")
        times = int(number) if star else 1
        total += times
        if total > _MOST:
            raise ValueError(f"more than {_MOST} items")
        yield from [item] * times
