"""Files as URIs, on every platform, and the URIs of made documents however a client spells them."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxsight.lsp.documents.uris import path_of, uri_of
from jaxsight.lsp.documents.virtual_uris import VirtualDocument

NAMES = st.text(
    st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda name: name not in (".", ".."))


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///home/user/a%20b/m%C3%BCller.py", "/home/user/a b/müller.py"),
        ("file:///a;b/c%23d.py", "/a;b/c#d.py"),
        ("file:///a+b%25.py", "/a+b%.py"),
        ("file://localhost/x.py", "/x.py"),
        ("untitled:Untitled-1", None),
        ("file://[::1/x.py", None),
        ("git:/home/user/x.py?%7B%7D", None),
        ("file:///home/user/.virtual_documents/sub/nb.ipynb", "/home/user/sub/nb.ipynb"),
        ("file:///home/user/.virtual_documents", "/home/user"),
    ],
)
def test_file_uris_name_paths(uri: str, path: str | None) -> None:
    assert path_of(uri, windows=False) == path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///C%3A/Users/a/x.py", "c:\\Users\\a\\x.py"),
        ("file:///c:/Users/a/x.py", "c:\\Users\\a\\x.py"),
        ("file://server/share/x.py", "\\\\server\\share\\x.py"),
    ],
)
def test_windows_uris_name_paths_with_one_spelling_of_the_drive(uri: str, path: str) -> None:
    assert path_of(uri, windows=True) == path


def test_windows_paths_become_uris() -> None:
    assert uri_of("C:\\a b\\x.py", windows=True) == "file:///c:/a%20b/x.py"
    assert uri_of("\\\\server\\share\\x.py", windows=True) == "file://server/share/x.py"


def test_what_is_no_character_has_a_uri_too() -> None:
    assert uri_of("/a\ud800.py", windows=False) == "file:///a%ED%A0%80.py"
    assert VirtualDocument("/\ud800.py", "f", "jaxpr").uri(windows=False).endswith("/f.jaxpr")


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_paths_survive_the_way_to_a_uri_and_back(names: list[str]) -> None:
    path = "/" + "/".join(names)
    assert path_of(uri_of(path, windows=False), windows=False) == path


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize(
    ("kind", "transform"),
    [("jaxpr", ""), ("lax", ""), ("pretty", ""), ("pretty", "value_and_grad")],
)
@given(names=st.lists(NAMES, min_size=1, max_size=3), function=NAMES)
def test_made_documents_survive_any_encoding_of_their_uri(
    kind: str, transform: str, windows: bool, names: list[str], function: str
) -> None:
    path = "c:\\" + "\\".join(names) if windows else "/" + "/".join(names)
    document = VirtualDocument(path, function, kind, transform)
    uri = document.uri(windows=windows)
    assert VirtualDocument.parse(uri, windows=windows) == document
    scheme, _, encoded_path = uri.partition(":")
    assert VirtualDocument.parse(f"{scheme}://{encoded_path}", windows=windows) == document
    encoded = "/".join(
        quote(part.replace("%3A", ":"), safe="%") for part in encoded_path.split("/")
    )
    assert VirtualDocument.parse(f"{scheme}:{encoded}", windows=windows) == document


def test_title_of_a_made_document_is_the_function() -> None:
    uri = VirtualDocument("/home/user/model.py", "Model.__call__", "jaxpr").uri(windows=False)
    assert uri == "jaxsight-jaxpr:/home/user/model.py/Model.__call__.jaxpr"


def test_source_is_titled_as_python_and_by_its_transformation() -> None:
    uri = VirtualDocument("/home/user/model.py", "loss", "lax", "grad").uri(windows=False)
    assert uri == "jaxsight-lax:/home/user/model.py/grad(loss).lax.py"


def test_view_is_titled_by_its_interpreter() -> None:
    document = VirtualDocument("/home/user/model.py", "Model.loss", "view", "flops")
    uri = document.uri(windows=False)
    assert uri == "jaxsight-view:/home/user/model.py/flops(Model.loss).txt"
    assert VirtualDocument.parse(uri, windows=False) == document
    assert document.request == "flops"


@pytest.mark.parametrize(
    "uri",
    [
        "file:///x.py",
        "jaxsight-jaxpr:",
        "jaxsight-jaxpr:/x.py/f.txt",
        "jaxsight-other:/x/f",
        "jaxsight-view:/x.py/f.txt",
    ],
)
def test_other_uris_are_no_made_documents(uri: str) -> None:
    assert VirtualDocument.parse(uri) is None
