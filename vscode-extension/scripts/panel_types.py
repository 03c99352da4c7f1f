"""Write the panel's types of what the server answers, from the schema of it.

Usage: `python scripts/panel_types.py [--check]`.

`docs/schemas/panel.json` describes the answers, and tests hold the server's against it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXTENSION = Path(__file__).resolve().parent.parent
SCHEMA = EXTENSION.parent / "docs/schemas/panel.json"
FILE = EXTENSION / "panel/src/shown.ts"

Schema = dict[str, Any]


def types(schema: Schema) -> str:
    """Return the types of a schema as TypeScript."""
    made = "Made from docs/schemas/panel.json by scripts/panel_types.py."
    parts = [f"/** What the server answers to panels. {made} */"]
    for name, described in schema["$defs"].items():
        parts.append("\n".join(_declared(name, described)))
    return "\n\n".join(parts) + "\n"


def _declared(name: str, schema: Schema) -> Iterator[str]:
    yield from _comment(schema, "")
    if "properties" not in schema:
        yield f"export type {name} = {_type(schema)};"
        return
    parents = [_type(each) for each in schema.get("allOf", ())]
    extends = f" extends {', '.join(parents)}" if parents else ""
    yield f"export interface {name}{extends} {{"
    for field, described in schema["properties"].items():
        yield from _comment(described, "  ")
        optional = "" if field in schema["required"] else "?"
        yield f"  readonly {field}{optional}: {_type(described)};"
    yield "}"


def _comment(schema: Schema, indent: str) -> Iterator[str]:
    if text := schema.get("description"):
        yield f"{indent}/** {text} */"


def _type(schema: Schema) -> str:
    match schema:
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case {"enum": list(values)}:
            return " | ".join(map(json.dumps, values))
        case {"anyOf": list(alternatives)}:
            return " | ".join(map(_type, alternatives))
        case {"type": "array", "items": dict(items)}:
            item = _type(items)
            return f"readonly ({item})[]" if " " in item else f"readonly {item}[]"
        case {"type": "object", "additionalProperties": dict(values)}:
            keys = schema.get("$comment", "").removeprefix("keys: ")
            if keys:
                return f"Readonly<Partial<Record<{keys}, {_type(values)}>>>"
            return f"Readonly<Record<string, {_type(values)}>>"
        case {"type": str(kind)}:
            return {"integer": "number"}.get(kind, kind)
    raise ValueError(f"{FILE.name}: no type for {schema}")


def main(arguments: list[str]) -> int:
    """Write the types, or with `--check` compare them."""
    text = types(json.loads(SCHEMA.read_text(encoding="utf-8")))
    if arguments == ["--check"]:
        if FILE.read_text(encoding="utf-8") != text:
            print(f"{FILE} is not made from {SCHEMA.name}: run python {sys.argv[0]}")
            return 1
        return 0
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
