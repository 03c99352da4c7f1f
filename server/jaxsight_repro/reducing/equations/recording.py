"""Records the values of all variables of a candidate, by running it once, equation by equation."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxsight_repro.failures import FINISHED
from jaxsight_repro.reducing import children
from jaxsight_repro.reducing.children import ChildLimits
from jaxsight_repro.reducing.devices import placed
from jaxsight_repro.reducing.equations.candidates import Array, Candidate, Keys, Value
from jaxsight_repro.reducing.equations.evaluation import Run, arguments_of, value_of
from jaxsight_repro.values import has_nan

_MOST_BYTES = 4 << 30
"""Bytes of all recorded values together, on disk, a choice; later ones are not recorded, and
equations that need them are not cut off."""


@dataclass(slots=True)
class Recorded:
    """The values of variables, by identity, and where something went wrong.

    Attributes:
        suspects: positions of equations that failed alone, or that first returned NaN.
        finished: whether all equations ran.
    """

    values: dict[int, Value] = field(default_factory=dict)
    suspects: list[int] = field(default_factory=list)
    finished: bool = False


def record(candidate: Candidate, limits: ChildLimits, *, split: bool = False) -> Recorded:
    """Run a candidate in a child; where it fails, the values so far are kept.

    Args:
        split: whether loops are run one operation at a time too, as without `jit`.
    """
    recorded = Recorded()
    with tempfile.TemporaryDirectory(prefix="jaxsight-values-") as name:
        folder = Path(name)
        ending, _ = children.run(lambda: _write(candidate, folder, split), limits)
        lines = (folder / "index").read_text().splitlines() if (folder / "index").exists() else []
        entries = [json.loads(line) for line in lines]
        data = folder / "data"
        mapped = np.memmap(data, np.uint8, "r") if data.exists() and data.stat().st_size else None
        for position, entry in enumerate(entries):
            if "nan" in entry:
                recorded.suspects.append(position)
            outputs = candidate.equations[position].outvars
            for var, place in zip(outputs, entry["values"], strict=True):
                value = _value(place, mapped)
                if value is not None:
                    recorded.values[id(var)] = value
        recorded.finished = len(entries) == len(candidate.equations)
        if ending.kind != FINISHED and not recorded.finished:
            recorded.suspects.append(len(entries))
    return recorded


def _write(candidate: Candidate, folder: Path, split: bool) -> bytes:
    """Write the results of each equation to a file, and a line about each to another."""
    candidate = placed(candidate)
    offset = 0
    poisoned = False
    with (
        (folder / "index").open("w") as index,
        (folder / "data").open("wb") as data,
        jax.disable_jit(split),
    ):
        for operands, results in Run(split).steps(candidate.equations, arguments_of(candidate)):
            values: list[list[object] | None] = []
            line: dict[str, object] = {"values": values}
            for result in results:
                value = value_of(result)
                stored = value.data if isinstance(value, Keys) else value
                if stored is None or offset + stored.nbytes > _MOST_BYTES:
                    values.append(None)
                    continue
                data.write(np.ascontiguousarray(stored).tobytes())
                impl = value.impl if isinstance(value, Keys) else ""
                values.append([offset, str(stored.dtype), list(stored.shape), impl])
                offset += stored.nbytes
            if not poisoned and any(map(has_nan, results)) and not any(map(has_nan, operands)):
                line["nan"] = poisoned = True
            data.flush()
            index.write(json.dumps(line) + "\n")
            index.flush()
    return b""


def _value(entry: list[Any] | None, mapped: Array | None) -> Value | None:
    """Return a recorded value, which stays in its file until it is read."""
    if entry is None:
        return None
    offset, dtype_name, shape, impl = entry
    dtype = jax.numpy.dtype(dtype_name)
    if mapped is None:
        array: Array = np.zeros(shape, dtype)
    else:
        size = dtype.itemsize * math.prod(shape)
        array = mapped[offset : offset + size].view(dtype).reshape(shape)
    return Keys(array, impl) if impl else array
