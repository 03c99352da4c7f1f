"""Convert URIs to paths and back."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote, urlsplit

DRIVE = re.compile(r"/[A-Za-z]:")
"""How the path of a Windows file begins in a URI."""
_JUPYTER_FOLDER = "/.virtual_documents/"

WINDOWS = os.name == "nt"


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
    elif windows and DRIVE.match(path):
        path = path[1].lower() + path[2:]
    path = path.replace(_JUPYTER_FOLDER, "/").removesuffix(_JUPYTER_FOLDER.rstrip("/"))
    return path.replace("/", "\\") if windows else path


def uri_of(path: str, *, windows: bool = WINDOWS) -> str:
    """Return the `file:` URI of an absolute path."""
    if windows:
        path = path.replace("\\", "/")
    if path.startswith("//"):
        host, _, file = path[2:].partition("/")
        return f"file://{quoted(host)}/{quoted(file)}"
    if re.match(r"[A-Za-z]:", path):
        return f"file:///{path[0].lower()}:{quoted(path[2:])}"
    return "file://" + quoted(path)


def quoted(text: str, safe: str = "/") -> str:
    """Quote a part of a URI; a client may have put lone surrogates into a path."""
    return quote(text, safe, errors="surrogatepass")


def uri_key(uri: str) -> str:
    """Return a key that is equal for differently encoded spellings of a URI."""
    return unquote(uri)
