"""Reads predictions: JSON Lines with `id` and `prediction`, from anybody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxsight.text.inert import one_line
from jaxsight_dataset.program import Record
from jaxsight_dataset.tables import files
from jaxsight_dataset.tables.files import UnreadableFile


class InvalidPredictions(Exception):
    """A file has no predictions for the questions; the text says what is wrong, and where."""


@dataclass(frozen=True, slots=True)
class ModelPredictions:
    """What a model predicted, by the ids of questions; `digest` is that of the file."""

    of: Mapping[str, object]
    digest: str


def read(path: Path) -> ModelPredictions:
    """Return the predictions of a file.

    Raises:
        InvalidPredictions: it cannot be read, a line is no prediction, or an id is there twice.
    """
    found: dict[str, object] = {}
    try:
        digest = files.digest(path)
        for number, line in enumerate(files.lines(path), start=1):
            if not line.strip():
                continue
            place = f"{path.name}:{number}"
            record = _record(line, place)
            if record["id"] in found:
                raise InvalidPredictions(f"{place}: a second prediction for {quoted(record['id'])}")
            found[record["id"]] = record["prediction"]
    except UnreadableFile as error:
        raise InvalidPredictions(str(error)) from error
    return ModelPredictions(found, digest)


def _record(line: bytes, place: str) -> Record:
    """Return a line.

    Raises:
        InvalidPredictions: it is no prediction.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidPredictions(f"{place}: invalid JSON") from error
    if not isinstance(record, dict) or not {"id", "prediction"} <= record.keys():
        raise InvalidPredictions(f"{place}: expected an object with `id` and `prediction`")
    if not isinstance(record["id"], str):
        raise InvalidPredictions(f"{place}: expected a text as `id`")
    return record


def quoted(identity: str) -> str:
    """Return an id as a message quotes it."""
    return repr(one_line(identity)[:60])
