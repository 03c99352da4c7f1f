"""`python -m tools.unprepared`: open files of libraries, and count what they show."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tools.unprepared import figures
from tools.unprepared.comparing import real_calls, verdict
from tools.unprepared.corpora import CORPORA, Corpus, is_test, program_of
from tools.unprepared.opened import shown

_PATIENCE = 60.0


def measured(
    corpus: Corpus, files: list[Path], python: str, *, seconds: float = _PATIENCE, run: bool = True
) -> Iterator[figures.Row]:
    """Open files of a corpus, and yield what their functions show, compared with a real run.

    Args:
        corpus: where the files are from.
        files: the files.
        python: the Python that traces, with or without the libraries.
        seconds: the longest time for each file, and for its real run.
        run: whether to compare.
    """
    root = corpus.unpacked()
    with tempfile.TemporaryDirectory() as state:
        for path in files:
            name = path.relative_to(root).as_posix()
            found = shown(path, root, python, sys.executable, Path(state), seconds)
            program = program_of(path, root) if run else None
            calls = real_calls(sys.executable, program, path, root, seconds) if program else {}
            rows = [(name, each, verdict(each, calls)) for each in found]
            seen = sum(each.is_shown for each in found)
            print(f"{seen}/{len(found)} {name}", flush=True)
            yield from rows


def sample(corpus: Corpus, count: int) -> list[Path]:
    """Return some files of a corpus, spread evenly."""
    files = corpus.files()
    step = max(len(files) // count, 1)
    return files[step - 1 :: step][:count]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.unprepared", description=__doc__)
    parser.add_argument("corpus", nargs="*", help="names of corpora, by default all")
    parser.add_argument("--every", type=int, default=1, help="open each N-th file only")
    parser.add_argument("--offset", type=int, default=0, help="the first of these")
    parser.add_argument("--quick", action="store_true", help="open the files of the nightly test")
    parser.add_argument("--only", choices=("tests", "modules"), help="open only these files")
    parser.add_argument("--python", default=sys.executable, help="the Python that traces")
    parser.add_argument("--seconds", type=float, default=_PATIENCE, help="the longest for a file")
    parser.add_argument("--no-run", action="store_true", help="do not compare with real runs")
    parser.add_argument("--json", type=Path, help="write a row for each function to this file")
    parser.add_argument("--store", action="store_true", help="write tests/unprepared.json")
    options = parser.parse_args()
    every: list[figures.Row] = []
    found: dict[str, figures.CorpusFigures] = {}
    for corpus in CORPORA:
        if options.corpus and corpus.name not in options.corpus:
            continue
        files = sample(corpus, QUICK) if options.quick else corpus.files()
        if options.only:
            files = [path for path in files if is_test(path) == (options.only == "tests")]
        files = files if options.quick else files[options.offset :: options.every]
        compares = not options.no_run
        rows = [*measured(corpus, files, options.python, seconds=options.seconds, run=compares)]
        every += rows
        found[corpus.name] = figures.figures(rows)
        print(f"{corpus.name}: {found[corpus.name].line()}", flush=True)
    for reason, number in figures.reasons(every).most_common():
        print(f"{number:5} {reason}")
    if options.json:
        told = [{"file": file, **asdict(each), "verdict": how} for file, each, how in every]
        options.json.write_text(json.dumps(told, indent=0), encoding="utf-8")
    if options.store:
        figures.store(found)
    return 0


QUICK = 2
"""Files of a corpus that the nightly test opens: one to three minutes with real runs."""

if __name__ == "__main__":
    sys.exit(main())
