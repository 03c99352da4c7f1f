"""Convert URIs to paths and back, and define the URIs of generated documents.

A generated document is identified by a path too,
`jaxsight-jaxpr:/folder/model.py/attention.jaxpr` or
`jaxsight-lax:/folder/model.py/grad(loss).lax.py`:
clients encode and decode URIs in different ways, and only a path survives that.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from jaxsight.wire.messages.tracing import JAXPR, STYLES, TRANSFORMS, Sourcerize

_DRIVE = re.compile(r"/[A-Za-z]:")
_VIEWED = re.compile(r"([^()]+)\((.*)\)", re.DOTALL)
_TRANSFORMED = re.compile(rf"({'|'.join(TRANSFORMS)})\((.*)\)", re.DOTALL)
_JUPYTER_FOLDER = "/.virtual_documents/"
_SCHEME_START = "jaxsight-"

WINDOWS = os.name == "nt"

VIEW = "view"

PLAIN = {JAXPR: ".jaxpr", "stablehlo": ".stablehlo", "hlo": ".hlo", "kernels": ".kernels.txt"}
"""Kinds of documents of the function itself, with their file endings."""

_ENDINGS = {**PLAIN, VIEW: ".txt"} | {style: f".{style}.py" for style in STYLES}

KINDS = tuple(_ENDINGS)
"""Kinds of generated documents of a function; each has its own scheme.

A view comes from one of the user's jaxpr interpreters; the styles are those of source.
"""

SCHEMES = tuple(_SCHEME_START + kind for kind in KINDS)


def path_of(uri: str, *, windows: bool = WINDOWS) -> str | None:
    """Return the path of a `file:` URI, or `None` for other schemes.

    Drive letters are lower-cased.
    jupyterlab-lsp opens notebooks in a folder `.virtual_documents` that does not exist: the path is
    that of the actual notebook.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:  # invalid host
        return None
    if parts.scheme != "file":
        return None
    path = unquote(parts.path)
    if parts.netloc and parts.netloc != "localhost":
        path = f"//{parts.netloc}{path}"
    elif windows and _DRIVE.match(path):
        path = path[1].lower() + path[2:]
    path = path.replace(_JUPYTER_FOLDER, "/").removesuffix(_JUPYTER_FOLDER.rstrip("/"))
    return path.replace("/", "\\") if windows else path


def uri_of(path: str, *, windows: bool = WINDOWS) -> str:
    """Return the `file:` URI of an absolute path."""
    if windows:
        path = path.replace("\\", "/")
    if path.startswith("//"):
        host, _, rest = path[2:].partition("/")
        return f"file://{_quoted(host)}/{_quoted(rest)}"
    if re.match(r"[A-Za-z]:", path):
        return f"file:///{path[0].lower()}:{_quoted(path[2:])}"
    return "file://" + _quoted(path)


def _quoted(text: str, safe: str = "/") -> str:
    """Quote a part of a URI; a client may have put lone surrogates into a path."""
    return quote(text, safe, errors="surrogatepass")


def same(uri: str) -> str:
    """Return a key that is equal for differently encoded spellings of a URI."""
    return unquote(uri)


@dataclass(frozen=True, slots=True)
class Made:
    """A generated document: text of a `kind`, of a function or of a `transform` of it.

    For a view, the transform is the jaxpr interpreter's name.
    """

    path: str
    function: str
    kind: str
    transform: str = ""

    @property
    def what(self) -> str | Sourcerize:
        """The corresponding request to the engine."""
        match self.kind:
            case plain if plain in PLAIN:
                return plain
            case "view":
                return self.transform
            case style:
                return Sourcerize(style, self.transform)

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
        return f"{_SCHEME_START}{self.kind}:{_quoted(path)}/{_quoted(self.title, safe='()')}"

    @staticmethod
    def parse(uri: str, *, windows: bool = WINDOWS) -> Made | None:
        """Return the document that `uri` identifies, or `None` if it is not a jaxsight URI."""
        scheme, _, rest = uri.partition(":")
        if scheme not in SCHEMES:
            return None
        kind = scheme.removeprefix(_SCHEME_START)
        # VS Code writes an empty authority (`jaxsight-jaxpr:///…`) or none, as it likes.
        path = unquote(re.sub(r"^//(?=/)", "", rest.partition("?")[0]))
        file, _, title = path.rpartition("/")
        if not file or not title.endswith(_ENDINGS[kind]):
            return None
        if windows:
            if _DRIVE.match(file):
                file = file[1].lower() + file[2:]
            file = file.replace("/", "\\")
        function = title.removesuffix(_ENDINGS[kind])
        if kind in PLAIN:
            return Made(file, function, kind)
        pattern = _VIEWED if kind == VIEW else _TRANSFORMED
        if (found := pattern.fullmatch(function)) is not None:
            return Made(file, found[2], kind, found[1])
        return Made(file, function, kind) if kind != VIEW else None
