"""Hold the JSON of the commands against its published schema, `docs/schemas/`.

Tests that run a command call `hold`, so that each output that any test has is held. A schema that is
published allows further fields; here all fields must be described.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from jaxsight.cli.output.printing import SCHEMA_VERSION

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
Output = TypeVar("Output", str, bytes)
FILE = SCHEMAS / f"{SCHEMA_VERSION}.json"


def hold(done: subprocess.CompletedProcess[Output]) -> subprocess.CompletedProcess[Output]:
    """Return a `python -m jaxsight …` that has ended.

    Fails if it printed JSON that its schema does not describe.
    """
    name = _name(done.args[3:])
    if name and done.stdout.strip():
        validate(name, json.loads(done.stdout))
    return done


def validate(name: str, value: object) -> None:
    """Fail if the schema of this name does not describe a value, with all of its fields."""
    if find_spec("jsonschema") is not None:  # the oldest JAX is tested without
        validator(name).validate(value)


@cache
def validator(name: str) -> Any:
    """Return the validator of a schema, which allows no field that is not described."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator({**closed(), "$ref": f"#/$defs/{name}"})


@cache
def published() -> dict[str, Any]:
    """Return the published schemas."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def closed() -> Any:
    """Return the schemas without further fields."""
    return _closed(published())


def fields() -> Iterator[str]:
    """Yield each field of the schemas: `kernel.lines: array`."""
    for name, schema in published()["$defs"].items():
        yield from _fields(name, schema)


def _closed(value: Any) -> Any:
    if isinstance(value, list):
        return [_closed(each) for each in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _closed(each) for key, each in value.items()}
    is_object = inner.get("type") == "object" and isinstance(inner.get("properties"), dict)
    return {**inner, "additionalProperties": False} if is_object else inner


def _fields(name: str, schema: Any) -> Iterator[str]:
    for each in schema.get("anyOf", ()):
        yield from _fields(name, each)
    if "items" in schema:
        yield from _fields(f"{name}[]", schema["items"])
    required = schema.get("required", ())
    for field, of_field in schema.get("properties", {}).items():
        types = of_field.get("type") or of_field.get("$ref") or "any"
        optional = "" if field in required else "?"
        kind = types if isinstance(types, str) else "|".join(types)
        yield f"{name}.{field}{optional}: {kind.removeprefix('#/$defs/')}"
        yield from _fields(f"{name}.{field}", of_field)


def _name(arguments: Sequence[str]) -> str:
    """Return the schema of what a command line prints; empty if it does not print JSON."""
    command, *rest = arguments
    if command == "check":
        joined = " ".join(rest).replace("=", " ")
        return (
            "check" if "--output-format json" in joined and "--write-baseline" not in joined else ""
        )
    if "--json" not in rest:
        return ""
    if command == "repro" and rest[0] == "reduce":
        return "reduce"
    if command != "dataset":
        return command
    made = dict.fromkeys(("generate", "mine"), "dataset_made")
    others = {
        "eval": "dataset_evaluated",
        "stats": "dataset_statistics",
        "verify": "dataset_verified",
    }
    return {**made, **others}.get(rest[0], "")
