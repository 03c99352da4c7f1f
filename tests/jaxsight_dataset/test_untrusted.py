"""Datasets from somewhere else: they are read inside of their folder, and rows have no effects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jaxsight.workers.own_python import ROOT
from jaxsight_dataset import read_rows
from jaxsight_dataset.making.worker_process import WorkerProcess
from jaxsight_dataset.tables import again, files, manifest, verification
from jaxsight_dataset.tables.files import UnreadableFile
from jaxsight_dataset.tables.manifest import File, Manifest, NoDataset
from tests.jaxsight_dataset.tables.conftest import jaxsight
from tests.jaxsight_dataset.tables.synthetic import row

PATH = "data/train-00000-of-00001.jsonl"


def dataset(out: Path, *rows: dict[str, Any], path: str = PATH) -> Manifest:
    """Write a dataset whose manifest has one file, which may be anywhere."""
    (out / "data").mkdir(parents=True, exist_ok=True)
    (out / PATH).write_text("".join(json.dumps(each) + "\n" for each in rows))
    described = File("rows", "train", len(rows), 10, files.digest(out / PATH))
    made = Manifest("jsonl", {}, "", {}, {}, {path: described})
    made.write(out)
    return made


def outside(out: Path) -> str:
    (out.parent / "outside.jsonl").write_text(json.dumps(row(0)) + "\n")
    return "../outside.jsonl"


def absolute(out: Path) -> str:
    return str(out.parent / outside(out).removeprefix("../"))


def link(out: Path) -> str:
    outside(out)
    (out / "data" / "link.jsonl").symlink_to("../../outside.jsonl")
    return "data/link.jsonl"


def link_of_a_folder(out: Path) -> str:
    outside(out)
    (out / "up").symlink_to("..")
    return "up/outside.jsonl"


def pipe(out: Path) -> str:
    os.mkfifo(out / "data" / "pipe.jsonl")
    return "data/pipe.jsonl"


def device(out: Path) -> str:
    return "/dev/zero"


def link_of_a_device(out: Path) -> str:
    (out / "data" / "zero.jsonl").symlink_to("/dev/zero")
    return "data/zero.jsonl"


def own_output(out: Path) -> str:
    return "/proc/self/fd/0"


def null(out: Path) -> str:
    return "data/\0.jsonl"


PLACES = [
    outside, absolute, link, link_of_a_folder, pipe, device, link_of_a_device,
    own_output, null,
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_manifest_names_files_of_its_folder_only(
    place: Callable[[Path], str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    dataset(out)
    described = dataset(out, path=place(out))
    found = verification.verify(out, manifest.read(out))
    assert found.rows == 0
    assert found.counts["files"] >= 1
    with pytest.raises(UnreadableFile):
        list(described.read_rows(out, "rows"))
    with pytest.raises(UnreadableFile):
        list(read_rows(out))


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_manifest_that_is_no_file_is_an_error(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / "manifest.json")
    for command in (["verify", "."], ["show", ".", "1"], ["stats", "."]):
        done = jaxsight("dataset", *command, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith("error: no dataset in .: manifest.json: it is")


@pytest.mark.parametrize(
    "change",
    [
        {"rows": "many"},
        {"rows": -1},
        {"rows": True},
        {"size": 1e300},
        {"table": "../rows"},
        {"split": []},
        {"sha256": 1},
        {"more": 1},
    ],
)
def test_a_manifest_of_other_types_is_damaged(change: dict[str, Any], tmp_path: Path) -> None:
    dataset(tmp_path, row(0))
    record = json.loads((tmp_path / "manifest.json").read_text())
    record["files"][PATH] |= change
    (tmp_path / "manifest.json").write_text(json.dumps(record))
    with pytest.raises(NoDataset, match=r"damaged manifest\.json"):
        manifest.read(tmp_path)


@pytest.mark.parametrize("line", ["[]", "1", '"text"', "null", "{", "[" * 100_000, '{"number": 1}'])
def test_a_line_that_is_no_row_is_a_problem(line: str, tmp_path: Path) -> None:
    described = dataset(tmp_path, row(0))
    (tmp_path / PATH).write_text(line + "\n")
    assert not verification.verify(tmp_path, described).is_sound


def test_a_line_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = dataset(tmp_path, row(0))
    monkeypatch.setattr(files, "_LONGEST", 100)
    found = verification.verify(tmp_path, described)
    assert any("line is longer" in problem for problem in found.problems["files"])


def test_a_card_replaces_links_and_follows_none(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in ("README.md", "README.md.tmp"):
        (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "out" / name).symlink_to(victim)
    files.replace_text(tmp_path / "out" / "README.md", "card")
    assert victim.read_text() == "mine"
    assert (tmp_path / "out" / "README.md").read_text() == "card"


SOURCE = """\
import jax.numpy as jnp
{attack}

def f(x):
    return jnp.sin(x)
"""
ATTACKS = {
    "writes a file": "open({mark!r}, 'w').close()",
    "writes by descriptor": "import os; os.close(os.open({mark!r}, os.O_CREAT | os.O_WRONLY))",
    "makes a folder": "import os; os.mkdir({mark!r})",
    "removes a file": "import os; os.remove({victim!r})",
    "links a file": "import os; os.symlink('/', {mark!r})",
    "starts a shell": "import os; os.system('touch {mark}')",
    "starts a process": "import subprocess; subprocess.run(['touch', {mark!r}])",
    "forks": "import os; os.fork() or os._exit(0); open({mark!r}, 'w')",
    "becomes a process": "import os; os.execvp('touch', ['touch', {mark!r}])",
    "calls native code": "import ctypes; ctypes.CDLL(None).system(b'touch {mark}')",
    "finds native code": "import ctypes; ctypes.pythonapi.Py_IncRef; open({mark!r}, 'w')",
    "catches the refusal": (
        "try:\n    open({mark!r}, 'w')\nexcept BaseException:\n"
        "    import os; os.system('touch {mark}')"
    ),
    "switches the refusal off": (
        "from jaxsight.tracer.isolation import refusals\nrefusals._refusing.clear()\n"
        "refusals._kind = lambda *_: ''\nopen({mark!r}, 'w').close()"
    ),
    "uses the network": (
        "import socket; s = socket.socket(); s.connect(('127.0.0.1', 9)); open({mark!r}, 'w')"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> Iterator[list[WorkerProcess]]:
    """One worker for all attacks, as the refusal lasts."""
    with WorkerProcess(sys.executable, x64=False, is_foreign=True) as process:
        yield [process]


def asked(worker: WorkerProcess, text: str) -> dict[str, Any]:
    program = again.program({**row(0), "source_code": text, "arguments": ARGUMENTS})
    return worker.ask({"action": "survey", "program": program})


ARGUMENTS = '{"x": {"dtype": "float32", "shape": [3], "values": "normal"}}'


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_row_that_is_made_again_has_no_effect(
    attack: str, worker: list[WorkerProcess], tmp_path: Path
) -> None:
    mark, victim = tmp_path / "ran", tmp_path / "victim"
    victim.write_text("")
    text = ATTACKS[attack].format(mark=str(mark), victim=str(victim))
    answer = asked(worker[0], SOURCE.format(attack=text))
    assert not os.path.lexists(mark)
    assert victim.exists()
    assert answer["rejected"] == "load", answer


def test_a_row_without_effects_is_made_again(worker: list[WorkerProcess]) -> None:
    assert "program" in asked(worker[0], SOURCE.format(attack=""))


FORGED = """
import os
for descriptor in range(3, 20):
    try:
        os.write(descriptor, {answer!r})
    except OSError:
        pass
"""


@pytest.mark.parametrize(
    "attack",
    [
        FORGED.format(answer=b"{}\n"),
        FORGED.format(answer=b'{"row": {"versions": 1}}\n'),
        FORGED.format(answer=b"\xff[" * 99 + b"\n"),
        "import os; os._exit(3)",
    ],
    ids=["another answer", "another row", "no answer", "an end"],
)
def test_a_row_that_speaks_for_its_worker_is_no_sound_row(attack: str) -> None:
    found = verification.Verified()
    source = SOURCE.format(attack=attack)
    rows = [row(0, source_code=source, arguments=ARGUMENTS)]
    again.make_again(rows, sys.executable, found, lambda: None)
    assert found.counts["again"] == 1
    assert "rejected" in found.problems["again"][0]


@pytest.mark.slow
def test_verifying_a_sample_says_what_it_runs_before_it_runs(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    text = SOURCE.format(attack=ATTACKS["writes a file"].format(mark=str(mark)))
    dataset(tmp_path / "out", row(0, source_code=text, arguments=ARGUMENTS))
    without = jaxsight("dataset", "verify", "out", cwd=tmp_path)
    assert "running" not in without.stderr
    done = jaxsight("dataset", "verify", "out", "--sample", "1", *PYTHON, cwd=tmp_path)
    assert done.stderr.splitlines()[0] == "note: running the source of 1 row as your user"
    assert "rejected: load" in done.stdout
    assert done.returncode == 1
    assert not mark.exists()


PYTHON = ("--python", sys.executable)


def test_a_worker_starts_outside_of_every_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with WorkerProcess(sys.executable, is_foreign=True) as process:
        answer = asked(process, SOURCE.format(attack="import os; raise ValueError(os.getcwd())"))
    assert answer["message"].endswith(f"ValueError: {ROOT}")


def test_the_help_says_that_sources_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jaxsight", "dataset", "verify", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert "runs their source" in done.stdout
