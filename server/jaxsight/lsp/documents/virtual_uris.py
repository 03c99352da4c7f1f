"""The URIs of virtual documents, which show what was computed about a function.

A virtual document is identified by a path too,
`jaxsight-jaxpr:/folder/model.py/attention.jaxpr` or
`jaxsight-lax:/folder/model.py/grad(loss).lax.py`:
clients encode and decode URIs in different ways, and only a path survives that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote

from jaxsight import extensions
from jaxsight.lsp.documents.uris import DRIVE, WINDOWS, quoted
from jaxsight.wire.messages.requests import TRANSFORMS, Transform, TransformedSource
from jaxsight_source.options import STYLES

if TYPE_CHECKING:
    # The schemes are known before the engine is imported.
    from jaxsight.features.model import DocumentKind

_SCHEME_START = "jaxsight-"
_VIEWED = re.compile(r"([^()]+)\((.*)\)", re.DOTALL)
_TRANSFORMED = re.compile(rf"({'|'.join(TRANSFORMS)})\((.*)\)", re.DOTALL)

PROFILE: Final = "profile"
VIEW: Final = "view"

PLAIN = {
    "jaxpr": ".jaxpr",
    "stablehlo": ".stablehlo",
    "hlo": ".hlo",
    "hlo-metadata": ".metadata.hlo",
    "kernels": ".kernels.txt",
}
"""Kinds of documents of the function itself, with their file endings."""

EXTENDED = extensions.documents()
"""Kinds of documents of extensions."""

_ENDINGS: dict[str, str] = {
    **PLAIN,
    **EXTENDED,
    PROFILE: ".profile.txt",
    VIEW: ".txt",
    **{style: f".{style}.py" for style in STYLES},
}

KINDS = tuple(_ENDINGS)


def scheme_of(name: str) -> str:
    """Return the URI scheme of a kind of documents by its name."""
    return _SCHEME_START + name


SCHEMES = {scheme_of(kind): kind for kind in KINDS}
"""The kind of the documents of each scheme."""


@dataclass(frozen=True, slots=True)
class VirtualDocument:
    """A virtual document: text of a `kind`, of a function or of a `transform` of it.

    For a view, the transform is the jaxpr interpreter's name.
    """

    path: str
    function: str
    kind: DocumentKind
    transform: str = ""

    @property
    def request(self) -> str | TransformedSource:
        """The corresponding request to the engine."""
        if self.kind in STYLES:
            return TransformedSource(self.kind, transform=cast(Transform, self.transform))
        return self.transform if self.kind == VIEW else self.kind

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
        return f"{scheme_of(self.kind)}:{quoted(path)}/{quoted(self.title, safe='()')}"

    @staticmethod
    def parse(uri: str, *, windows: bool = WINDOWS) -> VirtualDocument | None:
        """Return the document that `uri` identifies, or `None` if it is not a jaxsight URI."""
        scheme, _, path = uri.partition(":")
        if (kind := SCHEMES.get(scheme)) is None:
            return None
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
        if kind in PLAIN or kind in EXTENDED or kind == PROFILE:
            return VirtualDocument(file, function, kind)
        pattern = _VIEWED if kind == VIEW else _TRANSFORMED
        if (match := pattern.fullmatch(function)) is not None:
            return VirtualDocument(file, match[2], kind, match[1])
        return VirtualDocument(file, function, kind) if kind != VIEW else None
