"""Read settings from the project's `[tool.jaxsight]` and the editor's objects, and merge them.

An invalid value or an unknown key never raises: it is reported (on its line, for a project) and the
value of the next source applies: the editor's, then the project's, then the default.
"""

from __future__ import annotations

import logging
import re
import tomllib
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

    def finding(self, text: str) -> Finding:
        severity = Severity.WARNING if self.on_key else Severity.ERROR
        return _finding(_range_of(text, self.keys), self.message, severity, self.help)


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
    if not isinstance(table, dict):
        message = f"expected a table of settings, got {display(table)}"
        return ProjectSettings(path, problems=(_finding(_range_of(text, ()), message),))
    values, problems = _read(table, project=True)
    return ProjectSettings(path, values, tuple(each.finding(text) for each in problems))


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


def _range_of(text: str, keys: Keys) -> Range:
    """Return the range of the last of some keys below `[tool.jaxsight]` that is found.

    `tomllib` reports no places. Each key is searched after the one around it; one that is not
    found, as it is written in another way, and the elements of lists are at what is around them.
    """
    start = end = 0
    for key in ("tool", "jaxsight", *keys):
        pattern = rf"(?:^|[\[{{.,])[ \t]*([\"']?{re.escape(str(key))}[\"']?)[ \t]*[=.\]]"
        if (found := re.compile(pattern, re.MULTILINE).search(text, end)) is None:
            break
        start, end = found.span(1)
    first, last = _place_of(text, start), _place_of(text, end)
    return Range(first.start, last.end)


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
