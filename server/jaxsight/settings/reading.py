"""Read settings from the project's `[tool.jaxsight]` and the editor's objects, and merge them.

An invalid value or an unknown key never raises: it is reported (on its line, for a project) and the
value of the next source applies: the editor's, then the project's, then the default.
"""

from __future__ import annotations

import logging
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jaxsight.files import reading
from jaxsight.rules import wording
from jaxsight.rules.finding import Finding, Severity, finding_of
from jaxsight.settings.kinds import Complain, display, nearest, shortened
from jaxsight.settings.kinds import Path as Keys
from jaxsight.settings.schema import SCHEMA, Settings
from jaxsight.source.text import Position, Range
from jaxsight.text.inert import clause
from jaxsight.text.layout import camel

# The places of the keys and values of a TOML document, which `tomllib` does not report.
#
# The text must be valid TOML (`tomllib` has parsed it before): this scans it and checks nothing.

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'", re.DOTALL
)
_WORD = re.compile(r"[^\s,\]}#]+(?: \d\d:[^\s,\]}#]+)?")
"""A number, a boolean or a date; a space may separate a date and its time."""


@dataclass(frozen=True, slots=True)
class TomlPlace:
    """The ranges of a key and of its value.

    An array's element has no key, so both are the value's.
    """

    key: Range
    value: Range


def places(text: str) -> dict[Keys, TomlPlace]:
    """Return the places of all keys and array elements of `text`, by path from the root."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.places


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        """Where the next token begins."""
        self.end = 0
        """The end of the last one."""
        self.places: dict[Keys, TomlPlace] = {}
        self._line_starts = [0, *(match.end() for match in re.finditer(r"\n", text))]

    def document(self) -> None:
        table: Keys = ()
        counts: dict[Keys, int] = {}
        self._skip(0)
        while self.at < len(self.text):
            if self.text[self.at] != "[":
                self._pair(table)
                continue
            start = self.at
            brackets = 2 if self.text.startswith("[[", start) else 1
            self._skip(brackets)
            table = self._dotted(counts)
            self._skip(brackets)
            if brackets == 2:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            header = self._range(start)
            self.places.setdefault(table, TomlPlace(header, header))

    def _pair(self, table: Keys) -> None:
        start = self.at
        below = self._dotted({})
        key = self._range(start)
        self._skip(1)  # the equals sign
        self._value((*table, *below), key)

    def _dotted(self, counts: dict[Keys, int]) -> Keys:
        """Read a dotted key; return its path, which goes through the last elements of arrays."""
        path: Keys = ()
        while True:
            if path in counts:
                path = (*path, counts[path])
            if match := _STRING.match(self.text, self.at):
                part = str(tomllib.loads(f"k = {match[0]}")["k"])
            else:
                if (match := _BARE_KEY.match(self.text, self.at)) is None:
                    raise ValueError(f"no key at offset {self.at} of a TOML document")
                part = match[0]
            path = (*path, part)
            self._skip(len(match[0]))
            if not self.text.startswith(".", self.at):
                return path
            self._skip(1)

    def _value(self, path: Keys, key: Range | None) -> None:
        start = self.at
        match self.text[start]:
            case "[":
                self._skip(1)
                index = 0
                while not self._closes("]"):
                    self._value((*path, index), None)
                    index += 1
            case "{":
                self._skip(1)
                while not self._closes("}"):
                    self._pair(path)
            case _:
                match = _STRING.match(self.text, start) or _WORD.match(self.text, start)
                if match is None:
                    raise ValueError(f"no value at offset {start} of a TOML document")
                self._skip(len(match[0]))
        value = self._range(start)
        self.places[path] = TomlPlace(key or value, value)

    def _closes(self, bracket: str) -> bool:
        """Return whether the collection ends here, after a comma that may separate items."""
        if self.text[self.at] == ",":
            self._skip(1)
        if self.text[self.at] != bracket:
            return False
        self._skip(1)
        return True

    def _skip(self, count: int) -> None:
        """Go past a token, and what is blank after it."""
        self.at = self.end = self.at + count
        if (match := _BLANK.match(self.text, self.at)) is not None:
            self.at = match.end()

    def _range(self, start: int) -> Range:
        """Return the range from an offset to the end of the last token."""
        return Range(self._position(start), self._position(self.end))

    def _position(self, offset: int) -> Position:
        line = bisect_right(self._line_starts, offset) - 1
        return Position(line, offset - self._line_starts[line])


GROUPS = frozenset(key.rpartition(".")[0] for key in SCHEMA if "." in key)
CODE = "JX900"
MOST_PROBLEMS = 100
"""Problems of a file or object that are reported, a choice: more would hide other files."""
DEEPEST = 64
"""Nesting depth of arrays, tables and dotted keys, far more than settings have: `tomllib` recurses,
and its time for a dotted key grows with the square of its parts (`key_value_rule`)."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The settings of one `pyproject.toml`: values by dotted key, and its problems."""

    path: str
    values: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Problem:
    keys: Keys
    """As written, so that its place can be found."""
    message: str
    help: str
    on_key: bool
    """Whether it is about the key, which is ignored, and not about the value."""

    def finding(self, places: Mapping[Keys, TomlPlace]) -> Finding:
        place = _place(places, self.keys)
        if self.on_key:
            return _finding(place.key, self.message, Severity.WARNING, self.help)
        return _finding(place.value, self.message, help=self.help)


def read_project(root: str | Path) -> ProjectSettings:
    """Return the settings of `root`'s `pyproject.toml`; none if there is no such file."""
    path = str(Path(root) / "pyproject.toml")
    try:
        text = reading.text(path, reading.SETTINGS)
    except reading.MissingError:
        return ProjectSettings(path)
    except reading.UnreadableError as error:
        log.warning("%s", error)  # editors do not show findings in a file that they cannot open
        message = clause(f"cannot read the file: {error.reason}", wording.MOST)
        return ProjectSettings(path, problems=(_finding(_at(0, 0), message),))
    return parse_project(text, path)


def parse_project(text: str, path: str) -> ProjectSettings:
    """Return the settings in the text of a `pyproject.toml`."""
    if (problem := _nesting_problem(text)) is not None:
        return ProjectSettings(path, problems=(problem,))
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return ProjectSettings(path, problems=(_decode_finding(error, text),))
    except ValueError:
        # Python's own error for an integer with too many digits has no place.
        long = _LONG_INTEGER.search(text)
        place = _place_of(text, long.start() if long else 0)
        problems_of_file = (_finding(place, "integer with too many digits"),)
        return ProjectSettings(path, problems=problems_of_file)
    tool = document.get("tool")
    table = tool.get("jaxsight") if isinstance(tool, dict) else None
    if table is None:
        return ProjectSettings(path)
    toml_places = places(text)
    if not isinstance(table, dict):
        range = _place(toml_places, ()).value
        message = f"expected a table of settings, got {display(table)}"
        return ProjectSettings(path, problems=(_finding(range, message),))
    values, problems = _read(table, project=True)
    return ProjectSettings(path, values, tuple(each.finding(toml_places) for each in problems))


def merge(project: ProjectSettings, editor: Mapping[str, object]) -> Settings:
    """Return the settings in force.

    Args:
        project: the settings of `pyproject.toml`.
        editor: the raw object of the section `jaxsight`, or the `initializationOptions`.
    """
    values, problems = _read(editor, project=False)
    settings = Settings(
        problems=tuple(
            f"jaxsight.{'.'.join(map(str, problem.keys))}: {problem.message}"
            + (f"; {problem.help}" if problem.help else "")
            for problem in problems
        )
    )
    for key, setting in SCHEMA.items():
        match [layer[key] for layer in (project.values, values) if key in layer]:
            case [Mapping() as below, Mapping() as above] if setting.kind.table:
                settings = _with(settings, setting.attributes, {**below, **above})
            case [*_, value]:
                settings = _with(settings, setting.attributes, value)
    return settings


def _with(settings: Any, attributes: tuple[str, ...], value: object) -> Any:
    name, *below = attributes
    if below:
        value = _with(getattr(settings, name), tuple(below), value)
    return replace(settings, **{name: value})


def _read(
    table: Mapping[str, object], *, project: bool
) -> tuple[dict[str, object], list[_Problem]]:
    values: dict[str, object] = {}
    problems: list[_Problem] = []
    for written, key, raw in _entries(table):
        if (setting := SCHEMA.get(key)) is None:
            if len(problems) < MOST_PROBLEMS:
                problems.append(_unknown(written, key, raw))
            continue
        if project and setting.editor_only:
            message = f"`{key}` applies only in the editor's settings"
            help = "remove it, and set it in the editor"
            problems.append(_Problem(written, message, help, on_key=True))
            continue
        if (value := setting.kind.read(raw, _complaints(problems, written))) is not None:
            values[key] = value
    return values, problems


def _complaints(problems: list[_Problem], written: Keys) -> Complain:
    def complain(below: Keys, message: str, help: str) -> None:
        if len(problems) < MOST_PROBLEMS:
            problems.append(_Problem((*written, *below), message, help, on_key=False))

    return complain


def _entries(table: Mapping[str, object]) -> Iterator[tuple[Keys, str, object]]:
    """Yield each setting of a table: keys as written, dotted key, raw value; `null` is unset."""
    for name, raw in table.items():
        key = camel(str(name))
        if raw is None:
            continue
        if key in GROUPS and isinstance(raw, Mapping):
            for below, inner in raw.items():
                if inner is not None:
                    yield (name, below), f"{key}.{camel(str(below))}", inner
        else:
            yield (name,), key, raw


def _unknown(written: Keys, key: str, raw: object) -> _Problem:
    if key in GROUPS:
        message = f"expected a table, got {display(raw)}"
        return _Problem(written, message, "", on_key=False)
    group = key.rpartition(".")[0]
    names = {
        name.removeprefix(f"{group}." if group else "") for name in SCHEMA if name.startswith(group)
    }
    names = {name.partition(".")[0] for name in names}
    help = nearest(key.rpartition(".")[2], sorted(names))
    message = f"unknown setting `{shortened(key)}`"
    return _Problem(written, message, help, on_key=True)


def _place(places: Mapping[Keys, TomlPlace], keys: Keys) -> TomlPlace:
    """Return the place of a key below `[tool.jaxsight]`, or of the nearest enclosing table."""
    path: Keys = ("tool", "jaxsight", *keys)
    while path and path not in places:
        path = path[:-1]
    return places.get(path) or TomlPlace(_at(0, 0), _at(0, 0))


def _at(line: int, column: int) -> Range:
    return Range(Position(line, column), Position(line, column))


def _finding(
    range: Range, message: str, severity: Severity = Severity.ERROR, help: str = ""
) -> Finding:
    return finding_of(CODE, range, message, severity=severity, help=help)


_TOKEN = re.compile(
    r'"""(?:[^"\\]++|\\(?:.|\Z)|"(?!""))*+(?:"{3,5}+|\Z)'
    r"|'''(?:[^']++|'(?!''))*+(?:'{3,5}+|\Z)"
    r'|"(?:[^"\\\n]++|\\.)*+"?|'
    r"'[^'\n]*+'?|#[^\n]*+|[][{}.,=\n]",
    re.DOTALL,
)


def _nesting_problem(text: str) -> Finding | None:
    """Return a finding if values or keys are nested too deeply; the text need not be valid TOML."""
    depth = dots = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case ".":
                dots += 1
            case "[" | "{":
                depth, dots = depth + 1, 0
            case "]" | "}":
                depth, dots = max(depth - 1, 0), 0
            case "," | "=" | "\n":
                dots = 0
        if depth > DEEPEST or dots > DEEPEST:
            nested = "values" if depth > DEEPEST else "keys"
            return _finding(
                _place_of(text, token.start()), f"{nested} nested more than {DEEPEST} levels deep"
            )
    return None


_LONG_INTEGER = re.compile(r"(?<!\w)[+-]?[0-9][0-9_]{999,}")  # Python refuses 4,300 digits


def _place_of(text: str, offset: int) -> Range:
    return _at(text.count("\n", 0, offset), offset - (text.rfind("\n", 0, offset) + 1))


_DECODE_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def _decode_finding(error: tomllib.TOMLDecodeError, text: str) -> Finding:
    message = str(error)
    line, column = text.count("\n"), len(text) - text.rfind("\n") - 1
    if match := _DECODE_PLACE.search(message):
        message = message[: match.start()]
        if match[1]:
            line, column = int(match[1]) - 1, int(match[2]) - 1
    return _finding(_at(line, column), clause(f"invalid TOML: {message}", wording.MOST))
