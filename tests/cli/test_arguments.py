"""What a command line names: functions in files, files below folders, text in any encoding."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.cli.errors import CommandError
from jaxsight.cli.sources.arguments import Address, parse_address, python_files, read_source


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("x = 1\n")
    return tmp_path


def test_an_address_is_a_file_and_a_qualified_name(folder: Path) -> None:
    assert parse_address("model.py:Net.__call__") == Address(folder / "model.py", "Net.__call__")


def test_an_address_may_have_the_two_colons_of_pytest(folder: Path) -> None:
    assert parse_address("model.py::Net.__call__") == parse_address("model.py:Net.__call__")


def test_an_address_without_a_function_is_the_file(folder: Path) -> None:
    assert parse_address("model.py") == Address(folder / "model.py", "")


def test_a_missing_file_is_named_with_the_nearest_one() -> None:
    with pytest.raises(CommandError, match=r"^no such file: modle\.py; did you mean model\.py\?$"):
        parse_address("modle.py:f")


def test_a_folder_is_no_address(folder: Path) -> None:
    with pytest.raises(CommandError, match="is a folder"):
        parse_address(str(folder))


def test_folders_give_their_python_files_but_not_those_of_environments(folder: Path) -> None:
    for name in (
        "pkg/a.py",
        "pkg/a.pyi",
        "pkg/b.txt",
        ".hidden/c.py",
        "my-env/lib/d.py",
        "build/e.py",
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (folder / "my-env" / "pyvenv.cfg").touch()
    found = [str(path.relative_to(folder)) for path in python_files([Path("pkg"), Path()])]
    assert found == [str(Path("pkg", "a.py")), "model.py"]


def test_a_file_named_is_taken_whatever_its_name(folder: Path) -> None:
    (folder / "script").touch()
    assert list(python_files([Path("script")])) == [folder / "script"]


def test_a_missing_path_is_an_error() -> None:
    with pytest.raises(CommandError, match="no such file or folder: nowhere"):
        list(python_files([Path("nowhere")]))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a = '\xc3\xa9'\r\n", "a = 'é'\r\n"),
        (b"\xef\xbb\xbfa = 1\n", "a = 1\n"),
        (b"# coding: latin-1\na = '\xe9'\n", "# coding: latin-1\na = 'é'\n"),
    ],
)
def test_text_is_decoded_as_python_would(folder: Path, data: bytes, text: str) -> None:
    (folder / "model.py").write_bytes(data)
    assert read_source(folder / "model.py") == text


@pytest.mark.parametrize("data", [b"a = '\xff'\n", b"# coding: no-such\n"])
def test_text_that_cannot_be_decoded_is_an_error(folder: Path, data: bytes) -> None:
    (folder / "model.py").write_bytes(data)
    with pytest.raises(CommandError, match=r"^cannot read "):
        read_source(folder / "model.py")
