"""The card of a dataset: `README.md` for Hugging Face, and `croissant.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxsight_dataset.near_duplicates import SIMILARITY
from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import CHECKS, TABLES, markdown
from jaxsight_dataset.tables import croissant, files
from jaxsight_dataset.tables.features import hugging_face
from jaxsight_dataset.tables.manifest import Manifest
from jaxsight_dataset.tables.statistics import Statistics
from jaxsight_dataset.tables.writing import FOLDERS

NAME = "README.md"
CROISSANT = "croissant.json"

_TITLE = "JAX programs and their compiled forms"
_SUMMARY = (
    "Python functions with their jaxprs, StableHLO, optimized HLO and kernels, forward and backward"
)
_LICENCE = "https://spdx.org/licenses/CC0-1.0"

# The categories of a dataset card of Hugging Face.
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M")

_SPLITS = """\
Train, validation and test share no program, no structure and no template of the generator.
"""

_LICENCES = """\
Generated programs are in the public domain (CC0-1.0). Mined ones have the licence of their package:
see `provenance` in each row.
"""


def write(out: Path, manifest: Manifest, statistics: Statistics) -> None:
    """Write the card and the Croissant description into a dataset's folder."""
    files.replace_text(out / NAME, text(manifest, statistics))
    described = croissant.description(manifest, "jaxsight", f"{_SUMMARY}.", _LICENCE)
    files.replace_text(out / CROISSANT, json.dumps(described, indent=1) + "\n")


def text(manifest: Manifest, statistics: Statistics) -> str:
    """Return the card."""
    fields = _front_matter(manifest, statistics).items()
    # Values are JSON, which is YAML, too.
    head = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields)
    parts = [
        f"---\n{head}---\n",
        f"# {_TITLE}\n",
        f"{_SUMMARY}.\n{_made_with(manifest)}\n",
        "## Load it\n",
        _loading(manifest),
        "## Statistics\n",
        *_statistics(statistics),
        "## How rows are checked\n",
        *_validation(statistics),
        "## Splits\n",
        _SPLITS,
        "## Columns\n",
        markdown(TABLES["rows"]),
        "The table of disagreements has the same columns.\n",
        "## Licence\n",
        _LICENCES,
    ]
    return "\n".join(parts)


def _front_matter(manifest: Manifest, statistics: Statistics) -> Record:
    tables = [table for table in TABLES if manifest.of_table(table)]
    is_free = set(statistics.counts.get("licence", {})) <= {"CC0-1.0"}
    digits = len(str(statistics.rows))
    return {
        "license": "cc0-1.0" if is_free else "other",
        "pretty_name": _TITLE,
        "language": ["code"],
        "task_categories": ["text-generation"],
        "size_categories": [_SIZES[min(max(digits - 3, 0), len(_SIZES) - 1)]],
        "tags": ["jax", "xla", "jaxpr", "stablehlo", "hlo", "compilers", "code"],
        "configs": [
            {
                "config_name": table,
                **({"default": True} if table == tables[0] else {}),
                "data_files": [
                    {"split": split, "path": f"{FOLDERS[table]}/{split}-*"}
                    for split in manifest.splits(table)
                ],
            }
            for table in tables
        ],
        "dataset_info": [
            {
                "config_name": table,
                "features": hugging_face(TABLES[table]),
                "splits": [
                    {
                        "name": split,
                        "num_bytes": manifest.size(table, split),
                        "num_examples": rows,
                    }
                    for split, rows in manifest.splits(table).items()
                ],
            }
            for table in tables
        ],
    }


def _made_with(manifest: Manifest) -> str:
    versions, spec = manifest.versions, manifest.spec
    if "packages" in spec:
        packages = (f"{name} {version}".strip() for name, version in spec["packages"].items())
        how = f"mined from {', '.join(packages)}"
    else:
        how = f"generated from specification `{manifest.spec_digest}` with seed {spec.get('seed')}"
    return (
        f"Programs are {how}.\nMade by jaxsight {versions.get('jaxsight', '')} with "
        f"JAX {versions.get('jax', '')} and jaxlib {versions.get('jaxlib', '')}.\n"
        f"The columns are version {manifest.schema_version} of the schema.\n"
        f"The digest of the dataset is `{manifest.digest}`; `jaxsight dataset verify --digest` "
        "compares it with the files."
    )


def _loading(manifest: Manifest) -> str:
    folder = f"{FOLDERS['rows']}/train-*.{manifest.format}"
    return (
        "```python\n"
        "from datasets import load_dataset\n\n"
        'rows = load_dataset("path/to/this/folder", split="train")\n'
        'print(rows[0]["source_code"])\n'
        "```\n\n"
        "```sql\n"
        "-- DuckDB\n"
        f"SELECT category, count(*) FROM '{folder}' GROUP BY ALL;\n"
        "```\n"
    )


def _statistics(statistics: Statistics) -> Iterator[str]:
    share = statistics.share
    yield _table(
        ("", "rows", "share"),
        [
            ("rows", statistics.rows, ""),
            ("different programs", statistics.programs, share(statistics.programs)),
            ("different structures", statistics.structures, share(statistics.structures)),
            (
                f"near duplicates (MinHash ≥ {SIMILARITY})",
                statistics.near_duplicates,
                share(statistics.near_duplicates),
            ),
            ("templates", statistics.templates, ""),
            ("disagreements", statistics.disagreements, ""),
        ],
    )
    for name, title in (
        ("split", "Split"),
        ("category", "Category"),
        ("difficulty", "Difficulty"),
        ("equations", "Equations of the jaxpr"),
        ("dtype", "Dtype of an argument"),
        ("direction", "Direction"),
        ("transformation", "Transformation"),
        ("licence", "Licence"),
        ("package", "Package"),
        ("primitive", "Primitive"),
    ):
        if counts := statistics.counts.get(name):
            rows = [(f"`{value}`", count, share(count)) for value, count in counts.items()]
            yield _table((title, "rows", "share"), rows)
    for target, kernels in statistics.kernels.items():
        rows = [(f"`{value}`", count, share(count)) for value, count in kernels.items()]
        yield _table((f"Kernels on {target}", "rows", "share"), rows)


def _validation(statistics: Statistics) -> Iterator[str]:
    rows = []
    for name, what in CHECKS:
        outcomes = statistics.checks.get(name, {})
        counts = ", ".join(f"{outcome}: {count:,}" for outcome, count in outcomes.items())
        rows.append((f"`{name}`", what, counts))
    yield _table(("check", "what is done", "rows"), rows)
    yield (
        f"Programs whose results differ between two of these runs are in the table of\n"
        f"disagreements ({statistics.disagreements:,}).\n"
    )
    yield f"Of {statistics.surveyed:,} programs that were surveyed, these are no rows:\n"
    rejected = [(cause, count) for cause, count in statistics.rejected.items()]
    yield _table(("cause", "programs"), rejected or [("–", 0)])


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    aligned = ["---" if number == 0 else "---:" for number in range(len(head))]
    lines = [head, tuple(aligned), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")
