"""Reading the wire format: against JAX's own reader, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jaxsight.profiles import protobuf
from jaxsight.profiles.sources import files_of
from jaxsight.profiles.space import XSpace, opened, stats
from tests.profiles.made import MadePlane, gpu_plane, message, write

RECORD = """
import json, sys, warnings
warnings.simplefilter("ignore")
import jax, jax.numpy as jnp
from jax.profiler import ProfileData

f = jax.jit(lambda x: jnp.sin(x @ x).sum())
x = jnp.ones((64, 64))
f(x)
with jax.profiler.trace(sys.argv[1]):
    for i in range(3):
        with jax.profiler.StepTraceAnnotation("step", step_num=i):
            float(f(x))
[file] = __import__("pathlib").Path(sys.argv[1]).rglob("*.xplane.pb")
data = ProfileData.from_file(str(file))
json.dump([
    [plane.name, [
        [line.name, [
            [e.name, round(e.start_ns), round(e.duration_ns),
             {k: str(v) for k, v in e.stats if k in ("hlo_op", "program_id", "step_num")}]
            for e in line.events
        ]] for line in plane.lines
    ]] for plane in data.planes if plane.name == "/host:CPU"
], sys.stdout)
"""


def events_of(space: XSpace) -> list[object]:
    wanted_names = ("hlo_op", "program_id", "step_num")
    found: list[object] = []
    for plane in space.planes:
        if plane.name != "/host:CPU":
            continue
        wanted = plane.wanted(wanted_names)
        lines = []
        for line in plane.lines:
            events = []
            for event in space.events(line, set()):
                values = stats(event.stats, wanted, plane.stats)
                texts = {name: str(value) for name, value in values.items()}
                title = plane.events[event.name].title
                events.append(
                    [title, round(event.start / 1000), round(event.duration / 1000), texts]
                )
            lines.append([line.name, events])
        found.append([plane.name, lines])
    return found


@pytest.mark.slow
def test_events_are_those_of_jax_own_reader(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RECORD, str(tmp_path)]
    expected = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    [path] = files_of(tmp_path).paths
    with opened(path) as space:
        assert events_of(space) == expected
    assert sum(len(events) for _, lines in expected for _, events in lines) > 20


def test_events_that_are_not_wanted_are_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path / "host.xplane.pb", gpu_plane(0, 10))
    with opened(path) as space:
        [plane] = space.planes
        stream = plane.lines[0]
        [copies] = [key for key, name in plane.events.items() if name.title == "loop_copy"]
        everything = list(space.events(stream, set()))
        rest = list(space.events(stream, {copies}))
    assert len(everything) == 50
    assert rest == [event for event in everything if event.name != copies]


def test_unknown_fields_and_long_events_are_read(tmp_path: Path) -> None:
    written = MadePlane("/device:GPU:0", {}).written()
    event = message((1, 1), (2, 5_000_000), (3, 7), (4, message((1, 1), (5, "x" * 300))), (99, 1))
    line = message((2, "Stream #1"), (3, 2), (4, event), (77, b"new"), (4, event), (10, 5))
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(message((1, written + message((3, line)))))
    with opened(path) as space:
        [line_read] = space.planes[0].lines
        events = list(space.events(line_read, set()))
    assert [(event.start, event.duration) for event in events] == [(5_002_000, 7)] * 2


@pytest.mark.slow
@pytest.mark.alone
def test_memory_does_not_depend_on_the_size_of_a_profile(tmp_path: Path) -> None:
    plane = gpu_plane(0, 1000)
    fields = list(protobuf.fields(plane.written()))
    parts: list[tuple[int, int | bytes]] = []
    for number, value in fields:
        if number != 3 or not isinstance(value, bytes):
            parts.append((number, value))
            continue
        inner = list(protobuf.fields(value))
        for repetition in range(60):
            start = repetition * 1000 * 1000 * 1000
            parts.append((3, message(*((n, start if n == 3 else v) for n, v in inner))))
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(message((1, message(*parts))))
    assert path.stat().st_size > 15_000_000
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from jaxsight.profiles import reading, sources\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "profile = reading.read(sources.files_of(Path(sys.argv[1])))\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print((after - before) // 1024, sum(k.calls for k in profile.kernels))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, check=True, text=True
    )
    mebibytes, calls = map(int, done.stdout.split())
    assert calls == 7 * 1000 * 60
    assert mebibytes < 60
