"""The schema in the notations of Hugging Face and of Croissant."""

from __future__ import annotations

from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import Column, List, Struct, Type

_CROISSANT_TYPES = {
    "string": "sc:Text",
    "bool": "sc:Boolean",
    "int64": "sc:Integer",
    "float64": "sc:Float",
}


def hugging_face(columns: tuple[Column, ...]) -> list[Record]:
    """Return columns as the field `features` of `dataset_info` in a card."""
    return [{"name": column.name, **_hugging_face(column.type)} for column in columns]


def _hugging_face(kind: Type) -> Record:
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


def croissant(columns: tuple[Column, ...], files: str, record: str) -> list[Record]:
    """Return columns as fields of a Croissant record set.

    Records and lists of lists are left out: readers of Croissant 1.0 have no fields for them.

    Args:
        columns: of a table.
        files: the identifier of the table's files.
        record: the identifier of the record set.
    """
    fields: list[Record] = []
    for column in columns:
        kind = column.type
        of = kind.of if isinstance(kind, List) else kind
        if not isinstance(of, str):
            continue
        fields.append(
            {
                "@type": "cr:Field",
                "@id": f"{record}/{column.name}",
                "name": column.name,
                "description": column.description,
                "dataType": _CROISSANT_TYPES[of],
                **({"repeated": True} if isinstance(kind, List) else {}),
                "source": {"fileSet": {"@id": files}, "extract": {"column": column.name}},
            }
        )
    return fields
