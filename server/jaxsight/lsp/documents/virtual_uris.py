"""The URIs of virtual documents, which show what was computed about a function.

A virtual document is identified by a path too,
`jaxsight-jaxpr:/folder/model.py/attention.jaxpr` or
`jaxsight-lax:/folder/model.py/grad(loss).lax.py`:
clients encode and decode URIs in different ways, and only a path survives that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote

from jaxsight.lsp.documents.uris import DRIVE, WINDOWS, quoted
from jaxsight.wire.messages.requests import (
    JAXPR,
    STYLES,
    TRANSFORMS,
    SourceOptions,
    Style,
    Transform,
)

_SCHEME_START = "jaxsight-"
_VIEWED = re.compile(r"([^()]+)\((.*)\)", re.DOTALL)
_TRANSFORMED = re.compile(rf"({'|'.join(TRANSFORMS)})\((.*)\)", re.DOTALL)

VIEW = "view"

PLAIN = {
    JAXPR: ".jaxpr",
    "stablehlo": ".stablehlo",
    "hlo": ".hlo",
    "hlo-metadata": ".metadata.hlo",
    "kernels": ".kernels.txt",
}
"""Kinds of documents of the function itself, with their file endings."""

REPROS = {"repro": ".repro.py", "reduced": ".reduced.py"}
"""Kinds of repros of the function, which exist once they were extracted or reduced."""

_OF_FUNCTION = PLAIN | REPROS

_ENDINGS = {**_OF_FUNCTION, VIEW: ".txt"} | {style: f".{style}.py" for style in STYLES}

KINDS = tuple(_ENDINGS)
"""Kinds of virtual documents of a function; each has its own scheme.

A view comes from one of the user's jaxpr interpreters; the styles are those of source.
"""


def scheme_of(kind: str) -> str:
    """Return the URI scheme of a kind of documents."""
    return _SCHEME_START + kind


SCHEMES = tuple(map(scheme_of, KINDS))


@dataclass(frozen=True, slots=True)
class VirtualDocument:
    """A virtual document: text of a `kind`, of a function or of a `transform` of it.

    For a view, the transform is the jaxpr interpreter's name.
    """

    path: str
    function: str
    kind: str
    transform: str = ""

    @property
    def what(self) -> str | SourceOptions:
        """The corresponding request to the engine."""
        match self.kind:
            case plain if plain in _OF_FUNCTION:
                return plain
            case "view":
                return self.transform
            case style:
                return SourceOptions(cast(Style, style), cast(Transform, self.transform))

    @property
    def title(self) -> str:
        """The last part of its URI, which editors show."""
        name = f"{self.transform}({self.function})" if self.transform else self.function
        return name + _ENDINGS[self.kind]

    def uri(self, *, windows: bool = WINDOWS) -> str:
        """Return its URI."""
        path = self.path.replace("\\", "/") if windows else self.path
        if not path.startswith("/"):
            path = "/" + path
        return f"{_SCHEME_START}{self.kind}:{quoted(path)}/{quoted(self.title, safe='()')}"

    @staticmethod
    def parse(uri: str, *, windows: bool = WINDOWS) -> VirtualDocument | None:
        """Return the document that `uri` identifies, or `None` if it is not a jaxsight URI."""
        scheme, _, path = uri.partition(":")
        if scheme not in SCHEMES:
            return None
        kind = scheme.removeprefix(_SCHEME_START)
        # VS Code writes an empty authority (`jaxsight-jaxpr:///…`) or none, as it likes.
        path = unquote(re.sub(r"^//(?=/)", "", path.partition("?")[0]))
        file, _, title = path.rpartition("/")
        if not file or not title.endswith(_ENDINGS[kind]):
            return None
        if windows:
            if DRIVE.match(file):
                file = file[1].lower() + file[2:]
            file = file.replace("/", "\\")
        function = title.removesuffix(_ENDINGS[kind])
        if kind in _OF_FUNCTION:
            return VirtualDocument(file, function, kind)
        pattern = _VIEWED if kind == VIEW else _TRANSFORMED
        if (match := pattern.fullmatch(function)) is not None:
            return VirtualDocument(file, match[2], kind, match[1])
        return VirtualDocument(file, function, kind) if kind != VIEW else None
