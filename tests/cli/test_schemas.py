"""The published schemas of the commands' JSON: each output of a test is held against them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from jaxsight.cli.output.printing import SCHEMA_VERSION
from tests.cli.published import closed, fields, hold, published, validate
from tests.terminal import SERVER, jaxsight

COMMANDS = SERVER / "jaxsight" / "cli" / "commands"
CRASH = '''\
import jax.numpy as jnp


def f(x, y):
    """
    Example inputs:
        x: f32[2, 3]
        y: f32[4]
    """
    return jnp.sin(x) + jnp.dot(x, y)
'''
FIELDS = Path(__file__).with_name("published_fields")
"""The fields of each version, a file for each; nobody may rely on fields that are not in it."""


def test_schemas_are_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(published())
    jsonschema.Draft202012Validator.check_schema(closed())


def test_each_command_with_json_has_a_schema() -> None:
    modules = COMMANDS.rglob("*.py")
    with_json = {file.stem for file in modules if "AsJson" in file.read_text(encoding="utf-8")}
    assert with_json > {"show", "kernels", "targets"}
    assert {*with_json, "check", "repro"} <= published()["$defs"].keys()


def test_fields_are_neither_renamed_nor_removed_without_a_new_version() -> None:
    """A field that is new is added to the file of its version, at the end."""
    file = FIELDS / f"{SCHEMA_VERSION}.txt"
    known = file.read_text(encoding="utf-8").splitlines()
    now = list(dict.fromkeys(fields()))
    gone = [field for field in known if field not in now]
    assert not gone, "increase SCHEMA_VERSION, and describe the new version in a file of its own"
    assert [field for field in now if field not in known] == []


def test_an_output_with_a_field_that_nobody_described_fails() -> None:
    rule = {"code": "JX101", "name": "a", "severity": "warning", "default": True, "summary": "b"}
    described = {"schema_version": SCHEMA_VERSION, **rule, "url": None}
    validate("explain", [described])
    for wrong in ({**described, "more": 1}, rule, {**described, "default": "yes"}):
        with pytest.raises(jsonschema.ValidationError):
            validate("explain", [wrong])


def test_readers_may_meet_further_fields() -> None:
    schema = {**published(), "$ref": "#/$defs/rule"}
    rule = {"code": "JX101", "name": "a", "severity": "warning", "default": True, "summary": "b"}
    jsonschema.validate({"schema_version": 1, **rule, "url": None, "more": 1}, schema)


def test_json_that_a_test_prints_is_held() -> None:
    arguments = ["python", "-m", "jaxsight", "check", "--output-format", "json"]
    with pytest.raises(jsonschema.ValidationError):
        hold(subprocess.CompletedProcess(arguments, 0, '[{"code": "JX101"}]', ""))


@pytest.mark.slow
def test_repros_and_their_reductions_are_described(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(CRASH)
    python = ("--python", sys.executable)
    made = jaxsight("repro", "model.py:f", "-o", "repro.py", *python, "--json", cwd=tmp_path)
    assert json.loads(made.stdout)["reproduces"], made.stderr
    least = jaxsight(
        "repro", "reduce", "repro.py", "-o", "least.py", *python, "--json", cwd=tmp_path
    )
    assert json.loads(least.stdout)["failure"]["name"] == "TypeError", least.stderr
