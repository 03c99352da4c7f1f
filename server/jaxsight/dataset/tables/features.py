"""The schema in the notations of Hugging Face and of Croissant."""

from __future__ import annotations

from typing import Any

from jaxsight.dataset.schema import Column, List, Struct, Type

_CROISSANT_TYPES = {
    "string": "sc:Text",
    "bool": "sc:Boolean",
    "int64": "sc:Integer",
    "float64": "sc:Float",
}


def hugging_face(columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    """Return columns as the field `features` of `dataset_info` in a card."""
    return [{"name": column.name, **_hugging_face(column.type)} for column in columns]


def _hugging_face(kind: Type) -> dict[str, Any]:
    match kind:
        case List(of=Struct(fields=fields)):
            return {"list": hugging_face(fields)}
        case List(of=List() as of):
            return {"list": _hugging_face(of)}
        case List(of=of):
            return {"list": of}
        case Struct(fields=fields):
            return {"struct": hugging_face(fields)}
    return {"dtype": kind}


def croissant(
    columns: tuple[Column, ...], files: str, record: str, *, is_nested: bool = False
) -> list[dict[str, Any]]:
    """Return columns as fields of a Croissant record set.

    Args:
        columns: of a table, or of a record in it.
        files: the identifier of the table's files.
        record: the identifier of the record set.
        is_nested: whether these are fields of a record.
    """
    fields: list[dict[str, Any]] = []
    for column in columns:
        kind: Type = column.type
        is_repeated = isinstance(kind, List)
        while isinstance(kind, List):
            kind = kind.of
        name = f"{record}/{column.name}"
        field: dict[str, Any] = {
            "@type": "cr:Field",
            "@id": name,
            "name": column.name,
            "description": column.description,
        }
        if is_repeated:
            field["repeated"] = True
        if isinstance(kind, Struct):
            field["subField"] = croissant(kind.fields, files, name, is_nested=True)
        else:
            field["dataType"] = _CROISSANT_TYPES[kind]
        path = name.partition("/")[2].replace("/", ".")
        key = "jsonPath" if is_nested else "column"
        field["source"] = {"fileSet": {"@id": files}, "extract": {key: path}}
        fields.append(field)
    return fields
