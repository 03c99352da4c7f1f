"""The schema as pyarrow's, and pyarrow itself, which is imported when it is needed."""

from __future__ import annotations

from typing import Any

from jaxsight_dataset.schema import Column, List, Struct, Type


class MissingLibrary(Exception):
    """pyarrow is not installed; the text says how to install it."""


def pyarrow() -> Any:
    """Return pyarrow, with `pyarrow.parquet` imported.

    Raises:
        MissingLibrary: it is not installed.
    """
    try:
        import pyarrow.parquet  # type: ignore[import-not-found]
    except ImportError as error:
        raise MissingLibrary(
            'Parquet requires pyarrow; run pip install "jaxsight[dataset]", or use --format jsonl'
        ) from error
    library: object = pyarrow
    return library


def schema(columns: tuple[Column, ...]) -> Any:
    """Return columns as a `pyarrow.Schema`."""
    return pyarrow().schema([(column.name, _type(column.type)) for column in columns])


def _type(kind: Type) -> Any:
    library = pyarrow()
    match kind:
        case List(of=of):
            return library.list_(library.field("element", _type(of)))  # as Parquet names it
        case Struct(fields=fields):
            return library.struct([(field.name, _type(field.type)) for field in fields])
        case "string":
            return library.string()
        case "bool":
            return library.bool_()
        case "int64":
            return library.int64()
    return library.float64()
