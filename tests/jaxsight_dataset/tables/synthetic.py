"""Rows that nobody traced, for what does not look into them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jaxsight_dataset.making.make import DatasetResult
from jaxsight_dataset.schema import ROWS, VERSION, Column, List, Struct, Type
from jaxsight_dataset.spec import Spec
from jaxsight_dataset.tables import building
from jaxsight_dataset.tables.manifest import Manifest

SPLITS = ("train", "train", "train", "validation", "test")
VERSIONS = {"jax": "0.12.0", "jaxlib": "0.12.0", "jaxsight": "1.0", "numpy": "2", "python": "3.12"}


def _empty(kind: Type) -> Any:
    match kind:
        case List():
            return []
        case Struct(fields=fields):
            return _record(fields)
    return {"string": "", "bool": True, "int64": 0, "float64": 0.0}[kind]


def _record(columns: tuple[Column, ...]) -> dict[str, Any]:
    return {column.name: None if column.is_nullable else _empty(column.type) for column in columns}


def target(name: str, kernels: int) -> dict[str, Any]:
    """What a target makes of a program."""
    fields = next(column.type for column in ROWS if column.name == "targets").of.fields
    record = {**_record(fields), "target": name, "compiled": "device", "hlo": ""}
    kernel = next(field.type for field in fields if field.name == "kernels").of.fields
    return {
        **record,
        "kernel_count": kernels,
        "launch_count": kernels,
        "launches_known": True,
        "temp_bytes": 1024 * kernels,
        "kernels": [{**_record(kernel), "name": f"fusion.{at}"} for at in range(kernels)],
    }


def row(number: int, **changes: Any) -> dict[str, Any]:
    """A row that agrees with the schema; its split and template follow from its number."""
    chance = random.Random(number)
    split = SPLITS[number % len(SPLITS)]
    return {
        **_record(ROWS),
        "schema_version": VERSION,
        "number": number,
        "split": split,
        "source_code": f"import jax.numpy as jnp\n\n\ndef f(x):\n    return jnp.sin(x) + {number}\n",
        "function": "f",
        "category": ("math", "loops")[number % 2],
        "template": f"{split}-{number % 3}",
        "difficulty": "basic",
        "arguments": '{"x": {"dtype": "float32", "shape": [3, 4], "values": "normal"}}',
        "input_shapes": [[3, 4], []],
        "input_dtypes": ["float32", "int32"],
        "directions": ["forward", "backward"] if number % 2 else ["forward"],
        "primitives": ["add", "sin"],
        "equation_count": 2 + number % 20,
        "jaxpr": "{ lambda ; a:f32[3,4]. let b:f32[3,4] = sin a in (b,) }",
        "targets": [target("cpu", 1 + number % 3)],
        "canonical_digest": f"{number:032x}",
        "structure_digest": f"{split}-{number:x}",
        "minhash": [chance.randrange(1 << 32) for _ in range(32)],
        "validation": {
            **dict.fromkeys(("jitted", "inputs", "finite", "printed", "eager"), "passed"),
            "stablehlo": "passed",
            "gradient": "passed" if number % 2 else "not applicable",
            "one_device": "not applicable",
        },
        "test_success": True,
        "provenance": {
            "package": "jaxsight",
            "version": "1.0",
            "path": "",
            "licence": "CC0-1.0",
            "source": "",
        },
        "versions": VERSIONS,
        **changes,
    }


def store(out: Path, rows: Iterable[dict[str, Any]], shard_size: int = 7) -> DatasetResult:
    """Write records as shards into a work folder: rows, or records of other kinds as they are."""
    records = [each if len(each) <= 2 else {"row": each} for each in rows]
    (out / "work").mkdir(parents=True)
    made = DatasetResult(rows=sum("row" in record for record in records), surveyed=len(records) + 5)
    made.rejected["constant result"] = 5
    for start in range(0, len(records), shard_size):
        name = f"rows-{start // shard_size:05}.jsonl"
        lines = [json.dumps(record) + "\n" for record in records[start : start + shard_size]]
        (out / "work" / name).write_text("".join(lines))
        made.shards[name] = ""
    return made


def dataset(out: Path, rows: Iterable[dict[str, Any]], form: str = "parquet") -> Manifest:
    """Make a dataset of rows."""
    return building.build(out, store(out, rows), Spec(samples=20), VERSIONS, form)
