"""What is in force after reading a project's and an editor's settings, and what is said about wrong
ones.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxsight.rules.finding import Severity
from jaxsight.settings.documentation import page, schema_json
from jaxsight.settings.reading import ProjectSettings, merge, parse_project, read_project
from jaxsight.settings.schema import SCHEMA, Settings
from jaxsight.wire.meshes import Mesh


def project(text: str) -> ProjectSettings:
    return parse_project(f"[tool.jaxsight]\n{text}", "pyproject.toml")


def in_force(text: str = "", **editor: Any) -> Settings:
    return merge(project(text), editor)


def marked(text: str) -> str:
    """`text` with `^^^ message` under what each problem of the project points at."""
    found = project(text).problems
    lines = f"[tool.jaxsight]\n{text}".split("\n")
    shown = []
    for number, line in enumerate(lines[1:], 1):
        shown.append(line)
        for finding in found:
            start, end = finding.range.start, finding.range.end
            if start.line == number:
                width = (
                    end.column - start.column
                    if end.line == start.line
                    else len(line) - start.column
                )
                said = "; ".join(filter(None, (finding.message, finding.help)))
                shown.append(f"{' ' * start.column}{'^' * width} {finding.severity.value}: {said}")
                assert len(finding.message) <= 100
    return "\n".join(shown)


def test_defaults_are_in_force_without_any_settings() -> None:
    assert in_force() == Settings()
    assert in_force().memory_limit == 4 * 2**30
    assert in_force().timeouts.trace == 60
    assert in_force().select == ()


def test_project_wins_over_the_default_and_the_editor_over_the_project() -> None:
    text = 'python = "py"\n[tool.jaxsight.timeouts]\ntrace = 5\nexecute = 7'
    assert in_force(text).python == "py"
    settings = in_force(text, python="other", timeouts={"trace": 9})
    assert (settings.python, settings.timeouts.trace, settings.timeouts.execute) == ("other", 9, 7)


def test_tables_of_project_and_editor_are_joined_entry_by_entry() -> None:
    settings = in_force("sizes = { B = 1, D = 2 }", sizes={"D": 3})
    assert settings.sizes == {"B": 1, "D": 3}


def test_lists_of_the_editor_replace_those_of_the_project() -> None:
    assert in_force('ignore = ["JX401"]', ignore=["JX405"]).ignore == ("JX405",)


def test_keys_may_be_written_in_kebab_case() -> None:
    text = 'memory-limit = "1 KiB"\nper-file-ignores = { "tests/*" = ["JX4"] }\ninlay-hints.shapes = false'
    settings = in_force(text)
    assert settings.memory_limit == 1024
    assert settings.per_file_ignores == {"tests/*": ("JX4",)}
    assert not settings.inlay_hints.shapes


def test_null_from_an_editor_is_unset() -> None:
    settings = in_force('python = "py"', python=None, timeouts={"trace": None}, inlayHints=None)
    assert settings.python == "py"
    assert settings.problems == ()


@pytest.mark.parametrize(
    ("raw", "size"),
    [("4 GiB", 4 * 2**30), ("512MB", 512 * 10**6), ("1.5 kib", 1536), (1024, 1024), ("77", 77)],
)
def test_amounts_of_memory(raw: object, size: int) -> None:
    assert in_force(memoryLimit=raw).memory_limit == size


@pytest.mark.parametrize("raw", ["4 gigs", "-1 GiB", "0 B", "", 0, -5, True, 1.5, [], {}])
def test_wrong_amounts_of_memory_leave_the_default(raw: object) -> None:
    settings = in_force(memoryLimit=raw)
    assert settings.memory_limit == Settings().memory_limit
    [problem] = settings.problems
    assert problem.startswith("jaxsight.memoryLimit: expected an amount of memory")


@pytest.mark.parametrize(
    "expected",
    [
        """\
python = 3
^^^^^^ error: expected a string, got 3""",
        """\
pyhton = "python3"
^^^^^^ warning: unknown setting `pyhton`; did you mean `python`?""",
        """\
codeLens = "yes"
^^^^^^^^ error: expected true or false, got "yes\"""",
        """\
timeouts.trace = 0
         ^^^^^ error: expected a positive number of seconds, got 0""",
        """\
timeouts.tracing = 1
         ^^^^^^^ warning: unknown setting `timeouts.tracing`; did you mean `trace`?""",
        """\
timeouts = 5
^^^^^^^^ error: expected a table, got 5""",
        """\
ignore = ["JX401", "JX7", 4]
^^^^^^ error: unknown rule "JX7"
^^^^^^ error: expected a rule or rule prefix, got 4""",
        """\
ignore = "JX401"
^^^^^^ error: expected a list of rules such as ["JX4"], got "JX401\"""",
        """\
sizes = { B = 4, D = "wide", E = -1 }
                 ^ error: expected a positive whole number, got "wide"
                             ^ error: expected a positive whole number, got -1""",
        """\
per-file-ignores = { "a.py" = ["JX4O1"] }
                     ^^^^^^ error: unknown rule "JX4O1"; did you mean `JX401`?""",
        """\
trace.server = "verbose"
      ^^^^^^ warning: `trace.server` applies only in the editor's settings; remove it, \
and set it in the editor""",
        """\
[tool.jaxsight.timeouts]
trace = 0
^^^^^ error: expected a positive number of seconds, got 0""",
    ],
)
def test_problems_of_a_project_stand_under_what_is_wrong(expected: str) -> None:
    text = "\n".join(line for line in expected.split("\n") if "^" not in line)
    assert marked(text) == expected


def test_wrong_entries_of_a_table_leave_the_others() -> None:
    assert in_force('sizes = { B = 4, D = "wide" }').sizes == {"B": 4}


def test_problems_of_the_editor_name_the_setting() -> None:
    settings = in_force(timeouts={"trace": "fast"}, inlayHint={"shapes": True}, sizes={"B": 0})
    assert settings.problems == (
        'jaxsight.timeouts.trace: expected a positive number of seconds, got "fast"',
        "jaxsight.inlayHint: unknown setting `inlayHint`; did you mean `inlayHints`?",
        "jaxsight.sizes.B: expected a positive whole number, got 0",
    )


def test_a_project_value_stays_when_the_editor_gives_a_wrong_one() -> None:
    assert in_force("timeouts.trace = 5", timeouts={"trace": "fast"}).timeouts.trace == 5


def test_toml_that_does_not_parse_is_one_problem_at_its_place() -> None:
    [finding] = parse_project("[tool.jaxsight]\nsizes = {\n", "pyproject.toml").problems
    assert finding.code == "JX900"
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("invalid TOML: ")
    assert finding.range.start.line in (1, 2)


def test_a_tool_section_that_is_no_table_is_one_problem() -> None:
    [finding] = parse_project("[tool]\njaxsight = 3\n", "pyproject.toml").problems
    assert (finding.message, finding.range.start.line) == ("expected a table of settings, got 3", 1)


def test_a_project_without_pyproject_has_no_settings(tmp_path: Path) -> None:
    read = read_project(tmp_path)
    assert (dict(read.values), read.problems) == ({}, ())


def test_a_pyproject_that_is_not_utf8_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"a = '\xff'")
    [finding] = read_project(tmp_path).problems
    assert finding.message.startswith("cannot read the file: ")


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"\xef\xbb\xbf[tool.jaxsight]\npython = 'py'\n")
    assert merge(read_project(tmp_path), {}).python == "py"


def test_examples_of_a_project_are_read() -> None:
    read = project('[tool.jaxsight.examples]\n"m:f" = "x: f32[8]"')
    assert read.values["examples"] == {"m:f": "x: f32[8]"}


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("tests/test_a.py", ("JX4",)),
        ("tests/deep/b.py", ("JX4",)),
        ("src/a.py", ()),
        ("src/conftest.py", ("JX9",)),
    ],
)
def test_patterns_of_per_file_ignores(path: str, ignored: tuple[str, ...]) -> None:
    settings = in_force('per-file-ignores = { "tests/*" = ["JX4"], "conftest.py" = ["JX9"] }')
    assert settings.ignored_in(PurePosixPath(path)) == ignored


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
names = st.sampled_from([key.partition(".")[0] for key in SCHEMA]) | st.text(max_size=8)


@given(st.dictionaries(names, json_values, max_size=4))
def test_nothing_that_an_editor_sends_raises(editor: dict[str, Any]) -> None:
    settings = merge(ProjectSettings("pyproject.toml"), editor)
    for field in fields(Settings):
        if is_dataclass(default := getattr(Settings(), field.name)):
            continue
        assert isinstance(getattr(settings, field.name), type(default))


def test_every_default_is_what_no_settings_give() -> None:
    given = {f"jaxsight.{key}": setting.default for key, setting in SCHEMA.items()}
    assert {key: prop["default"] for key, prop in schema_json()["properties"].items()} == given


def test_the_schema_for_editors_has_type_scope_and_text_for_each_setting() -> None:
    for prop in schema_json()["properties"].values():
        assert {"type", "default", "markdownDescription", "scope"} <= set(prop)
    assert schema_json()["properties"]["jaxsight.trace.server"]["enum"] == [
        "off",
        "messages",
        "verbose",
    ]


def test_the_examples_of_the_page_are_right() -> None:
    [toml] = re.findall(r"```toml\n(.*?)```", page(), re.DOTALL)
    [json_text] = re.findall(r"```json\n(.*?)```", page(), re.DOTALL)
    read = parse_project(toml, "pyproject.toml")
    settings = merge(read, json.loads(json_text)["jaxsight"])
    assert read.problems == ()
    assert settings.problems == ()
    assert settings.timeouts.trace == 120


def test_a_project_has_a_mesh() -> None:
    assert in_force().mesh is None
    assert in_force('mesh = "data=2, model=4"').mesh == Mesh((("data", 2), ("model", 4)))
    assert in_force('mesh = "data=2"', mesh="data=4 explicit").mesh == Mesh(
        (("data", 4),), ("explicit",)
    )


def test_a_wrong_mesh_is_reported_as_in_a_section() -> None:
    assert marked('mesh = "data=2, data=4"').endswith(
        "error: duplicate mesh axis `data`; remove one of them"
    )
    assert marked("mesh = 4").endswith('error: expected a mesh such as "data=2, model=4", got 4')
    assert in_force('mesh = "data"').mesh is None
