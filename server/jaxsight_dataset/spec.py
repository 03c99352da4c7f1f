"""The specification of a dataset: what is generated, and how much of it."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from jaxsight.files import reading
from jaxsight_dataset.program import Record

CATEGORIES = (
    "arithmetic",
    "math",
    "array",
    "linear algebra",
    "reductions",
    "indexing",
    "gradients",
    "vectorization",
    "conditionals",
    "loops",
    "pytrees",
    "custom rules",
    "random numbers",
    "convolutions",
    "blocks",
    "nested transformations",
    "helper functions",
    "pallas",
    "distributed",
)

DTYPES = (
    *("float32", "float64", "bfloat16", "float16"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("bool", "complex64", "complex128"),
)

GENERATOR = 5
"""The version of the generator: another one writes other programs for the same seed."""


class InvalidSpec(ValueError):
    """A specification is invalid; the text says what is wrong, and what is expected."""


@dataclass(frozen=True, slots=True)
class Spec:
    """What a dataset contains.

    Attributes:
        samples: the number of rows.
        seed: rows of another seed are other programs.
        categories: those of the programs, in equal parts.
        dtypes: those of arguments.
        targets: devices, as `jaxsight targets` names them; `cpu` is always among them.
        max_rank: the largest rank of an argument.
        max_elements: the largest number of elements of an argument.
        shard_size: the number of rows of a shard.
    """

    samples: int = 1000
    seed: int = 0
    categories: tuple[str, ...] = CATEGORIES
    dtypes: tuple[str, ...] = DTYPES
    targets: tuple[str, ...] = ("cpu",)
    max_rank: int = 5
    max_elements: int = 65536
    shard_size: int = 250

    @property
    def digest(self) -> str:
        """Identifies what is generated, but for the seed."""
        record = {**asdict(self), "generator": GENERATOR}
        del record["seed"]
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]

    def record(self) -> Record:
        """Return the specification as JSON."""
        return asdict(self)

    @classmethod
    def of_record(cls, record: Record) -> Spec:
        """Return the specification of a record.

        Raises:
            InvalidSpec: a field is unknown, or has a value that is not among the expected ones.
        """
        defaults = cls()
        names = [each.name for each in fields(cls)]
        for name, value in record.items():
            if name not in names:
                raise InvalidSpec(f"unknown field {name!r}; expected one of {', '.join(names)}")
            _check(name, value, getattr(defaults, name))
        lists = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
        spec = cls(**{**record, **lists})
        targets = spec.targets if "cpu" in spec.targets else ("cpu", *spec.targets)
        return cls(**{**asdict(spec), "targets": targets})


def _check(name: str, value: Any, default: object) -> None:
    if isinstance(default, int):
        if isinstance(value, bool) or not isinstance(value, int) or value < (name != "seed"):
            raise InvalidSpec(f"invalid {name} {value!r}; expected a positive integer")
        return
    if not isinstance(value, list | tuple) or not value:
        raise InvalidSpec(f"invalid {name} {value!r}; expected a list of names")
    known = {"categories": CATEGORIES, "dtypes": DTYPES}.get(name)
    for item in value:
        if known is not None and item not in known:
            raise InvalidSpec(f"invalid {name}: {item!r}; expected one of {', '.join(known)}")


def read(path: Path) -> Record:
    """Read the fields of a specification from a TOML file.

    Raises:
        InvalidSpec: the file cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(reading.text(path))
    except reading.UnreadableError as error:
        raise InvalidSpec(str(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidSpec(f"{path} is no TOML: {error}") from error
