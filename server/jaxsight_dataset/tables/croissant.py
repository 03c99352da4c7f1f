"""The description of a dataset in Croissant 1.0 (https://docs.mlcommons.org/croissant)."""

from __future__ import annotations

from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import TABLES
from jaxsight_dataset.tables.features import croissant
from jaxsight_dataset.tables.manifest import Manifest
from jaxsight_dataset.tables.writing import FOLDERS

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in (
            *("citeAs", "column", "extract", "field", "fileObject", "fileProperty", "fileSet"),
            *("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField"),
            *("path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate"),
            *("separator", "source", "subField", "transform"),
        )
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}
"""The context that Croissant 1.0 prescribes."""

_ENCODINGS = {"parquet": "application/x-parquet", "jsonl": "application/jsonlines"}


def description(manifest: Manifest, name: str, text: str, licence: str) -> Record:
    """Return a dataset as JSON-LD.

    Args:
        manifest: of the dataset.
        name: of the dataset.
        text: one sentence.
        licence: the address of its licence.
    """
    tables = [table for table in TABLES if manifest.of_table(table)]
    encoding = _ENCODINGS[manifest.format]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": text,
        "license": licence,
        "version": f"{manifest.schema_version}.0.0",
        "distribution": [
            *(
                {
                    "@type": "cr:FileObject",
                    "@id": path,
                    "name": path,
                    "contentUrl": path,
                    "contentSize": f"{file.size} B",
                    "encodingFormat": encoding,
                    "sha256": file.sha256,
                }
                for path, file in sorted(manifest.files.items())
            ),
            *(
                {
                    "@type": "cr:FileSet",
                    "@id": f"{table}-files",
                    "name": f"{table}-files",
                    "encodingFormat": encoding,
                    "includes": f"{FOLDERS[table]}/*.{manifest.format}",
                }
                for table in tables
            ),
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": table,
                "name": table,
                "field": croissant(TABLES[table], f"{table}-files", table),
            }
            for table in tables
        ],
    }
