"""The kinds of values of settings: each with its description, its JSON schema and its reader.

A reader takes any value of TOML or JSON and never raises: it reports a problem, with the path below
the setting to the invalid part, and returns the valid part, or `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Generic, TypeVar

from jaxsight.examples.notation.shapes import parse_mesh
from jaxsight.examples.problems import Malformed
from jaxsight.rules import NAMES, RULES
from jaxsight.rules.selection import is_selector
from jaxsight.targets.target import UnknownTarget
from jaxsight.targets.target import parse as parse_target
from jaxsight.text import units
from jaxsight.text.layout import cut
from jaxsight.wire.meshes import Mesh

T = TypeVar("T")

LARGEST = 2**63 - 1
"""The largest whole number that a setting can have: that of TOML, whose integers have 64 bits."""
LONGEST = 1e9
"""The longest time in seconds, 30 years; longer ones are cut to this. Python's timers raise
`OverflowError` past 292 years (`PyTime_t`: nanoseconds in 64 bits)."""
MOST_ITEMS = 256
"""Items of a list, a choice: each rule in one is matched against all rules, which are fewer."""
_DIGITS = 4000
"""Bits of an integer that a message shows: `str` refuses 4,300 digits
(`sys.set_int_max_str_digits`), and its time grows with their square."""
_SHOWN = 40
"""Characters of a value in a message, a choice: as many again say what is wrong with it."""

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


def display(value: object) -> str:
    """Return a value as TOML and JSON write it, shortened."""
    match value:
        case bool():
            text = "true" if value else "false"
        case str():
            text = f'"{value}"'
        case Mapping():
            text = "a table"
        case Sequence():
            text = f"[{', '.join(display(element) for element in value[:_SHOWN])}]"
        case int() if value.bit_length() > _DIGITS:
            text = f"an integer of {value.bit_length():,} bits"
        case _:
            text = str(value)
    return shortened(text)


def shortened(text: str) -> str:
    """Return a text, or its beginning if it is too long for a message."""
    return cut(text, _SHOWN)


def nearest(name: str, names: Sequence[str]) -> str:
    """Return `did you mean …?` with the nearest of `names`; empty if none is near."""
    matches = get_close_matches(name, names, n=1)
    return f"did you mean `{matches[0]}`?" if matches else ""


def _scalar(
    expected: str, schema: Mapping[str, object], convert: Callable[[object], T | None]
) -> ValueKind[T]:
    def read(value: object, complain: Complain) -> T | None:
        if (converted := convert(value)) is None:
            complain((), f"expected {expected}, got {display(value)}", "")
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
    expected = "one of " + ", ".join(display(choice) for choice in choices)

    def keep(value: object) -> str | None:
        return value if isinstance(value, str) and value in choices else None

    return _scalar(expected, {"type": "string", "enum": list(choices)}, keep)


def _parsed(expected: str, example: str, parse: Callable[[str], T | None]) -> ValueKind[T]:
    """Return the kind of a text with a syntax of its own; `parse` raises errors with a help."""

    def read(value: object, complain: Complain) -> T | None:
        if not isinstance(value, str):
            complain((), f"expected {example}, got {display(value)}", "")
            return None
        try:
            return parse(value)
        except UnknownTarget as error:
            complain((), error.message, error.help)
        except Malformed as malformed:
            complain((), malformed.problem.message, malformed.problem.help)
        return None

    return ValueKind(expected, {"type": "string"}, read)


TARGET: ValueKind[str] = _parsed(
    "a target",
    'a target such as "cuda:h100"',
    lambda text: parse_target(text).name if text else "",
)
_A_MESH = 'a mesh such as "data=2, model=4"'
MESH: ValueKind[Mesh] = _parsed(
    _A_MESH, _A_MESH, lambda text: parse_mesh(text) if text.strip() else None
)


def _below(complain: Complain, key: str | int) -> Complain:
    """Return what reports the problems of an item."""
    return lambda path, message, help: complain((key, *path), message, help)


def list_of(kind: ValueKind[T], expected: str) -> ValueKind[tuple[T, ...]]:
    """Return the kind of a list whose items are of one kind; invalid items are dropped."""

    def read(value: object, complain: Complain) -> tuple[T, ...] | None:
        if not isinstance(value, list | tuple):
            complain((), f"expected {expected}, got {display(value)}", "")
            return None
        if len(value) > MOST_ITEMS:
            complain((), f"expected at most {MOST_ITEMS} items, got {len(value):,}", "")
            return None
        items = (kind.read(item, _below(complain, i)) for i, item in enumerate(value))
        return tuple(item for item in items if item is not None)

    return ValueKind(expected, {"type": "array", "items": dict(kind.schema)}, read)


def _bytes(value: object) -> int | None:
    if isinstance(value, str):
        size = units.parse_size(value)
        return int(min(size, LARGEST)) or None if size is not None else None
    return _positive_integer(value)


MEMORY: ValueKind[int] = _scalar(
    'an amount of memory such as "4 GiB"',
    {"type": ["string", "integer"]},
    _bytes,
)


CODE_LENGTH = len("JX000")


def _read_code(code: object, complain: Complain) -> str | None:
    if not isinstance(code, str):
        complain((), f"expected a rule or rule prefix, got {display(code)}", "")
        return None
    if is_selector(code):
        return code
    meant = code.upper().replace("O", "0").replace("I", "1").replace("L", "1")
    names = [meant] if meant in RULES else [*RULES, *NAMES]
    hint = nearest(code, names) if len(code) >= CODE_LENGTH else ""
    complain((), f"unknown rule {display(code)}", hint)
    return None


_CODE = ValueKind("a rule or rule prefix", {"type": "string"}, _read_code)
CODE_LIST = replace(
    list_of(_CODE, 'a list of rules such as ["JX4"]'), expected="a list of rules or rule prefixes"
)


def table_of(kind: ValueKind[T], expected: str) -> ValueKind[Mapping[str, T]]:
    """Return the kind of a table whose values are of one kind; invalid entries are dropped."""

    def read(value: object, complain: Complain) -> Mapping[str, T] | None:
        if not isinstance(value, Mapping):
            complain((), f"expected {expected}, got {display(value)}", "")
            return None
        entries = (
            (str(name), kind.read(entry, _below(complain, str(name))))
            for name, entry in value.items()
        )
        return {name: entry for name, entry in entries if entry is not None}

    schema = {"type": "object", "additionalProperties": dict(kind.schema)}
    return ValueKind(expected, schema, read, table=True)
