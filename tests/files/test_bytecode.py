"""What attrs and dataclasses compiled is found again in the next process, and never in place of
something else.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import builtins, dataclasses, sys
import attr._make, attrs
from pathlib import Path
from jaxsight.files.bytecode import cached_bytecode

sys.dont_write_bytecode = {dont_write}
compiled = 0
real = builtins.compile
def counting(*arguments, **named):
    global compiled
    compiled += 1
    return real(*arguments, **named)
builtins.compile = counting
with cached_bytecode(Path(sys.argv[1]), attr._make, dataclasses):
    @attrs.define
    class Point:
        x: int = {default}
    @dataclasses.dataclass(frozen=True, slots=True)
    class Pair:
        first: int
        second: Point
print(compiled, Point(), Pair(1, Point()) == Pair(1, Point()), Pair.__init__.__annotations__["second"] is Point, sep="|")
"""


def run(file: Path, *, default: int = 1, dont_write: bool = False) -> list[str]:
    """How many scripts a new process compiles, and what the classes came out as."""
    script = SCRIPT.format(default=default, dont_write=dont_write)
    command = [sys.executable, "-c", script, str(file)]
    return subprocess.check_output(command, text=True).strip().split("|")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "codes"


def test_the_next_process_compiles_nothing(file: Path) -> None:
    first, *objects = run(file)
    assert int(first) > 0
    assert objects == ["Point(x=1)", "True", "True"]
    assert run(file) == ["0", *objects]


def test_another_class_is_not_mistaken_for_the_kept_one(file: Path) -> None:
    assert run(file, default=1)[1] == "Point(x=1)"
    assert run(file, default=2)[1] == "Point(x=2)"


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_a_broken_file_is_replaced(file: Path, content: bytes) -> None:
    run(file)
    stored = file.read_bytes()
    file.write_bytes(content)
    assert int(run(file)[0]) > 0
    assert file.read_bytes() == stored


def test_a_file_that_was_cut_off_is_replaced(file: Path) -> None:
    run(file)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert int(run(file)[0]) > 0
    assert file.read_bytes() == content


def test_a_file_with_a_flipped_bit_is_replaced(file: Path) -> None:
    run(file)
    content = file.read_bytes()
    middle = len(content) // 2
    file.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    assert int(run(file)[0]) > 0
    assert file.read_bytes() == content


def test_a_file_that_others_can_write_is_replaced(file: Path) -> None:
    run(file)
    file.chmod(0o666)
    assert int(run(file)[0]) > 0
    assert run(file)[0] == "0"


def test_a_file_in_a_folder_that_others_can_write_is_not_run(file: Path) -> None:
    run(file)
    file.parent.chmod(0o777)
    assert int(run(file)[0]) > 0


def test_nothing_is_written_where_python_is_told_not_to(file: Path) -> None:
    run(file, dont_write=True)
    assert not file.exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    assert run(tmp_path / "taken" / "codes")[1] == "Point(x=1)"


def test_it_is_kept_by_a_python_without_the_packages_of_the_server(file: Path) -> None:
    script = SCRIPT.replace("import attr._make, attrs", "sys.modules['platformdirs'] = None")
    script = script.replace("attr._make, dataclasses", "dataclasses")
    script = script.replace("@attrs.define", "@dataclasses.dataclass(frozen=True)")
    command = [sys.executable, "-c", script.format(default=1, dont_write=False), str(file)]
    counts = [int(subprocess.check_output(command, text=True).split("|")[0]) for _ in range(2)]
    assert counts[0] > 0
    assert counts[1] == 0
