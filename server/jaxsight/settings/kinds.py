"""The kinds of values of settings: each with its description, its JSON schema and its reader.

A reader takes any value of TOML or JSON and never raises: it reports a problem, with the path below
the setting to the invalid part, and returns the valid part, or `None`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Generic, TypeVar

from jaxsight.examples.notation.meshes import parse_mesh
from jaxsight.examples.problems import Malformed
from jaxsight.rules import NAMES, RULES
from jaxsight.rules.selection import is_selector
from jaxsight.targets.target import UnknownTarget
from jaxsight.targets.target import parse as parse_target
from jaxsight.wire.meshes import Mesh

T = TypeVar("T")

LARGEST = 2**63 - 1
"""The largest whole number that a setting can have, larger than the memory of any machine."""
LONGEST = 1e9
"""The longest time in seconds, 30 years; longer ones are cut to this."""
MOST_CODES = 256
"""Maximum number of entries of a list of rules; there are fewer rules."""
_DIGITS = 4000
"""Maximum size in bits of an integer that a message shows."""

Path = tuple[str | int, ...]
Complain = Callable[[Path, str, str], None]
"""Takes the path below the setting, a message, and help (empty if there is none)."""


@dataclass(frozen=True, slots=True)
class ValueKind(Generic[T]):
    """A kind of values: `expected` completes "expected …", `schema` is for the raw value."""

    expected: str
    schema: Mapping[str, object]
    read: Callable[[object, Complain], T | None]
    table: bool = False
    """Whether the editor's entries are added to the project's instead of replacing them."""


def shown(value: object) -> str:
    """Return a value as TOML and JSON write it, shortened."""
    match value:
        case bool():
            text = "true" if value else "false"
        case str():
            text = f'"{value}"'
        case Mapping():
            text = "a table"
        case Sequence():
            text = f"[{', '.join(shown(element) for element in value[:40])}]"
        case int() if value.bit_length() > _DIGITS:
            text = f"an integer of {value.bit_length():,} bits"
        case _:
            text = str(value)
    return shortened(text)


def shortened(text: str) -> str:
    """Return a text, or its beginning if it is too long for a message."""
    return text if len(text) <= 40 else f"{text[:39]}…"


def nearest(name: str, names: Sequence[str]) -> str:
    """Return `did you mean …?` with the nearest of `names`; empty if none is near."""
    matches = get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean `{matches[0]}`?" if matches else ""


def _scalar(
    expected: str, schema: Mapping[str, object], convert: Callable[[object], T | None]
) -> ValueKind[T]:
    def read(value: object, complain: Complain) -> T | None:
        converted = convert(value)
        if converted is None:
            complain((), f"expected {expected}, got {shown(value)}", "")
        return converted

    return ValueKind(expected, schema, read)


def _positive_number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(min(value, LONGEST))
    return None


def _positive_integer(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST:
        return value
    return None


TEXT: ValueKind[str] = _scalar(
    "a string", {"type": "string"}, lambda value: value if isinstance(value, str) else None
)
FLAG: ValueKind[bool] = _scalar(
    "true or false", {"type": "boolean"}, lambda value: value if isinstance(value, bool) else None
)
SECONDS: ValueKind[float] = _scalar(
    "a positive number of seconds", {"type": "number", "exclusiveMinimum": 0}, _positive_number
)
SIZE: ValueKind[int] = _scalar(
    "a positive whole number", {"type": "integer", "minimum": 1}, _positive_integer
)


def one_of(*choices: str) -> ValueKind[str]:
    """Return the kind of one of some words."""
    expected = "one of " + ", ".join(shown(choice) for choice in choices)

    def keep(value: object) -> str | None:
        return value if isinstance(value, str) and value in choices else None

    return _scalar(expected, {"type": "string", "enum": list(choices)}, keep)


def _read_target(value: object, complain: Complain) -> str | None:
    if not isinstance(value, str):
        complain((), f'expected a target such as "cuda:h100", got {shown(value)}', "")
        return None
    if not value:
        return ""
    try:
        return parse_target(value).name
    except UnknownTarget as error:
        complain((), error.message, error.help)
        return None


TARGET: ValueKind[str] = ValueKind("a target", {"type": "string"}, _read_target)


def _read_mesh(value: object, complain: Complain) -> Mesh | None:
    if not isinstance(value, str):
        complain((), f'expected a mesh such as "data=2, model=4", got {shown(value)}', "")
        return None
    if not value.strip():
        return None
    try:
        return parse_mesh(value)
    except Malformed as malformed:
        complain((), malformed.problem.message, malformed.problem.help)
        return None


MESH: ValueKind[Mesh] = ValueKind(
    'a mesh such as "data=2, model=4"', {"type": "string"}, _read_mesh
)


def list_of(kind: ValueKind[T], expected: str) -> ValueKind[tuple[T, ...]]:
    """Return the kind of a list whose items are of one kind; invalid items are dropped."""

    def read(value: object, complain: Complain) -> tuple[T, ...] | None:
        if not isinstance(value, list | tuple):
            complain((), f"expected {expected}, got {shown(value)}", "")
            return None
        elements = []
        for index, element in enumerate(value):

            def complain_below(path: Path, message: str, help: str, index: int = index) -> None:
                complain((index, *path), message, help)

            if (read := kind.read(element, complain_below)) is not None:
                elements.append(read)
        return tuple(elements)

    return ValueKind(expected, {"type": "array", "items": dict(kind.schema)}, read)


BYTES_PER_UNIT = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def _bytes(value: object) -> int | None:
    match value:
        case str() if match := _AMOUNT.fullmatch(value):
            unit = BYTES_PER_UNIT.get(match[2].upper())
            return int(min(float(match[1]) * unit, LARGEST)) or None if unit else None
        case str():
            return None
        case _:
            return _positive_integer(value)


MEMORY: ValueKind[int] = _scalar(
    'an amount of memory such as "4 GiB"',
    {"type": ["string", "integer"]},
    _bytes,
)


CODE_LENGTH = len("JX000")


def _read_codes(value: object, complain: Complain) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple):
        complain((), f'expected a list of rules such as ["JX4"], got {shown(value)}', "")
        return None
    if len(value) > MOST_CODES:
        complain((), f"expected at most {MOST_CODES} rules, got {len(value):,}", "")
        return None
    codes = []
    for index, code in enumerate(value):
        if not isinstance(code, str):
            complain((index,), f"expected a rule or rule prefix, got {shown(code)}", "")
        elif not is_selector(code):
            meant = code.upper().replace("O", "0").replace("I", "1").replace("L", "1")
            names = [meant] if meant in RULES else [*RULES, *NAMES]
            hint = nearest(code, names) if len(code) >= CODE_LENGTH else ""
            complain((index,), f"unknown rule {shown(code)}", hint)
        else:
            codes.append(code)
    return tuple(codes)


CODE_LIST: ValueKind[tuple[str, ...]] = ValueKind(
    "a list of rules or rule prefixes",
    {"type": "array", "items": {"type": "string"}},
    _read_codes,
)


def table_of(kind: ValueKind[T], expected: str) -> ValueKind[Mapping[str, T]]:
    """Return the kind of a table whose values are of one kind; invalid entries are dropped."""

    def read(value: object, complain: Complain) -> Mapping[str, T] | None:
        if not isinstance(value, Mapping):
            complain((), f"expected {expected}, got {shown(value)}", "")
            return None
        entries = {}
        for name, entry in value.items():

            def complain_below(path: Path, message: str, help: str, name: str = str(name)) -> None:
                complain((name, *path), message, help)

            if (read := kind.read(entry, complain_below)) is not None:
                entries[str(name)] = read
        return entries

    schema = {"type": "object", "additionalProperties": dict(kind.schema)}
    return ValueKind(expected, schema, read, table=True)
