"""`jaxsight dataset`, as a person runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxsight_dataset.cli.progress import duration, line
from tests.jaxsight_dataset.tables.conftest import SERVER, jaxsight
from tests.jaxsight_dataset.tables.synthetic import dataset, row
from tests.terminal import process


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small dataset of made-up rows, `pairs`."""
    folder = tmp_path_factory.mktemp("pairs")
    dataset(folder / "pairs", [row(number) for number in range(20)])
    return folder


@pytest.mark.slow
def test_generated_rows_are_verified_and_made_again(generated: Path) -> None:
    made = json.loads((generated / "made.json").read_text())
    assert made["rows"] == made["made"]["rows"] == 12
    assert made["spec"]["seed"] == 3
    done = jaxsight(
        *("dataset", "verify", "pairs", "--sample", "2", "--digest", made["digest"]),
        *("--python", sys.executable),
        cwd=generated,
    )
    expected = f"sound: 12 rows checked, 2 made again\ndigest {made['digest']}\n"
    assert done.stdout == expected, done.stdout
    assert done.returncode == 0


@pytest.mark.slow
def test_the_same_command_on_a_finished_dataset_makes_the_same_bytes(
    generated: Path, tmp_path: Path
) -> None:
    shutil.copytree(generated, tmp_path, dirs_exist_ok=True)
    for name in ("data", "manifest.json", "README.md"):
        path = tmp_path / "pairs" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = jaxsight(
        *("dataset", "generate", "pairs", "--spec", "small.toml", "--python", sys.executable),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pairs: 12 rows · train ")
    for path in (generated / "pairs").rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(generated)
            assert copy.read_bytes() == path.read_bytes(), path.name


@pytest.mark.slow
def test_other_options_need_another_folder(generated: Path) -> None:
    done = jaxsight(
        *("dataset", "generate", "pairs", "--spec", "small.toml", "--seed", "4"),
        *("--python", sys.executable),
        cwd=generated,
    )
    assert done.returncode == 2
    assert "another specification, seed or JAX" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interruption_keeps_shards_and_says_how_to_go_on(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "jaxsight", "dataset", "generate", "out"),
            *("--samples", "50", "--jobs", "1", "--python", sys.executable),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SERVER)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "out" / "work" / "title.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "interrupted: 0 shards of rows kept; the same command continues\n" in errors


def test_show_prints_source_jaxpr_and_kernels(pairs: Path) -> None:
    done = jaxsight("dataset", "show", "pairs", "3", cwd=pairs)
    assert done.returncode == 0, done.stderr
    head, _, rest = done.stdout.partition("\n")
    assert head == "#3 f · loops · basic · 5 equations · forward and backward · validation"
    assert row(3)["source_code"] in rest
    assert row(3)["jaxpr"] in rest
    assert "cpu: 1 kernel · 1 launch · temp 1 KiB" in rest
    shown = json.loads(jaxsight("dataset", "show", "pairs", "3", "--json", cwd=pairs).stdout)
    assert shown == row(3)


def test_show_refuses_numbers_that_are_no_rows(pairs: Path) -> None:
    done = jaxsight("dataset", "show", "pairs", "99", cwd=pairs)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: no row 99 in pairs, which has 20 rows\n"


def test_stats_prints_counts(pairs: Path) -> None:
    done = jaxsight("dataset", "stats", "pairs", cwd=pairs)
    assert done.stdout.startswith(
        "20 rows · 100.0 % different programs · 100.0 % different structures · 0.0 % near"
    )
    found = json.loads(jaxsight("dataset", "stats", "pairs", "--json", cwd=pairs).stdout)
    assert found["counts"]["split"] == {"train": 12, "test": 4, "validation": 4}


def test_verify_exits_with_1_and_says_what_is_wrong(tmp_path: Path) -> None:
    dataset(tmp_path / "pairs", [row(0), row(1, canonical_digest=row(0)["canonical_digest"])])
    done = jaxsight("dataset", "verify", "pairs", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == (
        "programs: row 1 is the same program as row 0\n2 rows checked: 1 duplicate program\n"
    )
    found = json.loads(jaxsight("dataset", "verify", "pairs", "--json", cwd=tmp_path).stdout)
    assert (found["is_sound"], found["counts"]["programs"]) == (False, 1)


def test_card_writes_the_card_again(tmp_path: Path) -> None:
    dataset(tmp_path / "pairs", [row(0)])
    before = (tmp_path / "pairs" / "README.md").read_bytes()
    (tmp_path / "pairs" / "README.md").unlink()
    done = jaxsight("dataset", "card", "pairs", cwd=tmp_path)
    assert done.stdout == "pairs/README.md\n"
    assert (tmp_path / "pairs" / "README.md").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stats", "nowhere"), "no dataset in nowhere: manifest.json is missing"),
        (("generate", "pairs", "--categories", "poetry"), "invalid categories: 'poetry'; expected"),
        (("generate", "full"), "full is not empty; choose a new folder"),
        (("generate", "new", "--spec", "none.toml"), "cannot read none.toml"),
        (("generate", "new", "--engine", "ray"), 'Ray is not installed; run pip install "jaxsight'),
    ],
)
def test_errors_are_one_line_and_say_what_to_do(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "ray.py").write_text("raise ImportError")
    (tmp_path / "full" / "mine.txt").write_text("1")
    extra = ("--python", sys.executable) if arguments[0] == "generate" else ()
    path = os.pathsep.join([str(tmp_path / "hidden"), str(SERVER)])
    done = process("dataset", *arguments, *extra, cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {message}"), done.stderr
    assert done.stderr.count("\n") == 1


def test_progress_has_the_rate_and_the_remaining_time() -> None:
    assert line("rows", 1200, 10000, 200, 25.0) == "rows: 1,200 of 10,000 · 8.0/s · 18 min left"
    assert line("surveyed", 250, 0, 250, 10.0) == "surveyed: 250 · 25.0/s"
    assert line("rows", 0, 10, 0, 3.0) == "rows: 0 of 10"


@pytest.mark.parametrize(
    ("seconds", "text"), [(4, "4 s"), (89, "89 s"), (100, "2 min"), (12000, "3 h 20 min")]
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text
