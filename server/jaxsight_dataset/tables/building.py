"""Builds a dataset from the shards of its work folder: tables, manifest and card."""

from __future__ import annotations

import json
from pathlib import Path

from jaxsight_dataset.making.make import WORK, DatasetResult
from jaxsight_dataset.program import Record
from jaxsight_dataset.spec import Spec
from jaxsight_dataset.tables import card, statistics, writing
from jaxsight_dataset.tables.files import TableFormat
from jaxsight_dataset.tables.manifest import Manifest
from jaxsight_dataset.tables.statistics import Statistics


def build(
    out: Path,
    made: DatasetResult,
    contents: Spec | Record,
    versions: dict[str, str],
    form: TableFormat,
) -> Manifest:
    """Write the tables, the manifest and the card of a dataset, and return the manifest.

    Args:
        out: its folder, with the shards of `made`.
        made: what was made of the specification.
        contents: what was generated; for mined programs, the packages and targets.
        versions: of JAX, jaxlib, NumPy, Python and jaxsight.
        form: that of the tables.

    Raises:
        MissingLibrary: the format requires pyarrow.
        UnreadableFile: a shard cannot be read.
        OSError: the folder cannot be written.
    """
    shards = [out / WORK / name for name in sorted(made.shards)]
    if isinstance(contents, Spec):
        # With lists, as it is read again.
        fields, digest = json.loads(json.dumps(contents.record())), contents.digest
    else:
        fields, digest = contents, ""
    written = writing.write(out, shards, form)
    described = Manifest(form, fields, digest, versions, made.record(), written)
    described.write(out)
    write_card(out, described)
    return described


def write_card(out: Path, described: Manifest) -> Statistics:
    """Write the card of a dataset from its tables, and return its statistics.

    Raises:
        MissingLibrary: the format requires pyarrow.
        UnreadableFile: a table cannot be read.
        OSError: the folder cannot be written.
    """
    computed = statistics.compute(out, described)
    card.write(out, described, computed)
    return computed
