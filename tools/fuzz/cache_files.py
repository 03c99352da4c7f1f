"""What was compiled, on disk, made wrong: an entry is found as it was kept, or not found."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
import zlib
from pathlib import Path
from random import Random

from jaxsight.queries.programs.disk_cache import DiskCache, digest
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import Compiled, Memory
from tools.fuzz.pieces import mutated_bytes
from tools.fuzz.report import Failure, Report, chance, deadline

NAMES = tuple(digest("fuzz", str(index)) for index in range(4))


def _entry(index: int) -> Compiled:
    graph = Graph(f"module_{index}", ())
    return Compiled(
        index, "cpu", "device", graph, Memory(index, 1, 2, 0, 0), "HloModule " * 50, 0.5
    )


def _spoil(folder: Path, random: Random) -> str:
    """Do something to the files of a cache."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = random.choice(files)
    data = file.read_bytes()
    match random.randrange(8):
        case 0:
            file.write_bytes(data[: random.randrange(len(data) + 1)])
            return "truncated"
        case 1:
            other = random.choice(files)
            swapped = other.read_bytes()
            other.write_bytes(data)
            file.write_bytes(swapped)
            return "swapped"
        case 2:
            file.write_bytes(zlib.compress(b'{"type": "Compiled"}'))
            return "foreign"
        case 3:
            file.write_bytes(random.randbytes(random.randrange(200)))
            return "noise"
        case 4:
            file.unlink()
            file.mkdir()
            return "a folder"
        case 5:
            file.unlink()
            file.symlink_to(
                random.choice(("/dev/null", "/proc/self/mem", "/nonexistent", file.name))
            )
            return "a link"
        case 6:
            file.unlink()
            os.mkfifo(file)
            return "a pipe"
        case _:
            file.write_bytes(mutated_bytes(data, random))
            return "flipped"


def run(count: int, seed: int) -> Report:
    report = Report()
    logging.getLogger("jaxsight.queries.programs.disk_cache").addFilter(lambda record: False)
    for number in range(count):
        name = f"{seed}:{number}"
        folder = Path(tempfile.mkdtemp(prefix="jaxsight-fuzz-"))
        try:
            report.cases += 1
            _case(folder, chance(name), name, report)
        finally:
            shutil.rmtree(folder)
    return report


def _case(folder: Path, random: Random, name: str, report: Report) -> None:
    cache = DiskCache(folder)
    for index, entry in enumerate(NAMES):
        cache.put(entry, _entry(index))
    done = []
    for _ in range(random.randrange(1, 4)):
        with contextlib.suppress(OSError):  # what was done before is in the way
            done.append(_spoil(folder, random))
    for what in done:
        report.count(what)
    try:
        with deadline(20):
            for index, entry in enumerate(NAMES):
                found = DiskCache(folder).get(entry)
                assert found in (None, _entry(index)), f"entry {index} is another one"
            cache.sweep()
            cache.put(NAMES[0], _entry(0))
            assert cache.get(NAMES[0]) in (None, _entry(0))
            cache.clear()
    except Exception as error:  # noqa: BLE001  # whatever it is, it is what was looked for
        problem = f"{type(error).__name__}: {error}"
        report.failures.append(Failure(name, problem, ", ".join(done)))
