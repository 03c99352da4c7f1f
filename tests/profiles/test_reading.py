"""Profiles of GPUs, TPUs and CPUs, as they are written, and what they say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from jaxsight.profiles.host_lines import HostTask
from jaxsight.profiles.places import CodePlace
from jaxsight.profiles.profile import Profile, scope_of
from jaxsight.profiles.reading import read
from jaxsight.profiles.sources import NoProfile, files_of
from jaxsight.profiles.space import NotAProfile
from tests.profiles.made import (
    PROGRAMS,
    Event,
    MadePlane,
    Op,
    gpu_plane,
    host_plane,
    program,
    write,
)


def microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def profile_of(folder: Path, *planes: MadePlane) -> Profile:
    return read(files_of(write(folder / "host.xplane.pb", *planes)))


def test_time_of_a_gpu_is_at_lines_of_the_users_files(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, PROGRAMS, gpu_plane(0, steps=3))

    lines = {
        (place.file, place.line, place.function): (microseconds(share.seconds), share.calls)
        for place, share in profile.lines.items()
    }
    assert lines == {
        ("/project/model.py", 4, "loss"): (1260, 9),  # with the copy of its result, which XLA added
        ("/project/model.py", 3, "loss"): (600, 3),
        ("/project/model.py", 9, "step"): (300, 3),
    }
    assert {name: microseconds(each.seconds) for name, each in profile.libraries.items()} == {
        "flax": 90
    }
    assert microseconds(profile.transfers.seconds) == 120
    assert profile.unmatched.seconds == 0
    assert {name: microseconds(each.seconds) for name, each in profile.scopes.items()} == {
        "Net/Dense_0": 1260
    }
    assert profile.versions == (("jax_version", "0.12.0"),)
    assert profile.notes == ()


def test_kernels_are_those_of_the_device_with_their_instruction(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, PROGRAMS, gpu_plane(0, steps=2))

    named = {(k.name, k.title): (k.calls, k.is_for, k.is_collective) for k in profile.kernels}
    assert named == {
        ("gemm.2", "void cutlass::gemm<128>"): (2, False, False),
        ("gemm.2", "cutlass::reduce_k"): (2, False, False),
        ("fusion.1", "loop_add_fusion"): (2, False, False),
        ("all-reduce.3", "ncclDevKernel_AllReduce"): (2, False, True),
        ("copy.4", "loop_copy"): (2, True, False),
        ("tanh.5", "tanh"): (2, False, False),
        ("MemcpyH2D", ""): (2, False, False),
    }


def test_idle_time_and_the_overlap_of_collectives(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, PROGRAMS, gpu_plane(0, steps=3))

    [device] = profile.devices
    assert device.name == "GPU:0"
    assert microseconds(device.seconds) == 2840
    # Each step is busy from 0 to 700 µs and from 800 to 840 µs.
    assert microseconds(device.busy_seconds) == 3 * 740
    assert microseconds(device.idle_inside) == 300
    assert microseconds(device.idle_between) == 2 * 160
    # The all-reduce runs from 550 to 650 µs, and the product until 600 µs.
    assert microseconds(device.collective_seconds) == 300
    assert microseconds(device.exposed_seconds) == 150


def test_steps_are_executions_on_the_device_with_the_numbers_of_the_marks(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, PROGRAMS, host_plane(3), gpu_plane(0, steps=3))

    [device] = profile.devices
    assert device.steps_of == "train"
    steps = [
        (s.number, microseconds(s.seconds), microseconds(s.busy_seconds)) for s in device.steps
    ]
    assert steps == [(100, 1000, 740), (101, 1000, 740), (102, 840, 740)]
    [host] = profile.hosts
    assert [(task, calls, microseconds(time)) for task, calls, time in host.work] == [
        (HostTask.RESULTS, 1, 900)
    ]


def test_executions_without_marks_are_steps(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, PROGRAMS, gpu_plane(0, steps=4))

    [device] = profile.devices
    assert device.steps_of == "jit_step(7)"
    assert [microseconds(step.seconds) for step in device.steps] == [1000, 1000, 1000, 840]


def test_several_hosts_and_devices(tmp_path: Path) -> None:
    run = tmp_path / "plugins" / "profile" / "2026_11_27_10_00_00"
    for host, slower in (("a", 1.0), ("b", 1.5)):
        planes = [gpu_plane(device, 3, slower) for device in range(2)]
        write(run / f"{host}.xplane.pb", PROGRAMS, *planes, host=host)
    write(tmp_path / "plugins" / "profile" / "2026_11_26_10_00_00" / "a.xplane.pb", PROGRAMS)

    files = files_of(tmp_path)
    assert (files.run, files.others) == ("2026_11_27_10_00_00", ("2026_11_26_10_00_00",))
    profile = read(files)
    devices = [(d.host, d.name, microseconds(d.step_seconds)) for d in profile.devices]
    assert devices == [
        ("a", "GPU:0", 1000),
        ("a", "GPU:1", 1000),
        ("b", "GPU:0", 1500),
        ("b", "GPU:1", 1500),
    ]
    [line] = [share for place, share in profile.lines.items() if place.line == 3]
    assert (microseconds(line.seconds), line.calls) == (600 * 2 + 900 * 2, 12)


def test_time_of_a_tpu(tmp_path: Path) -> None:
    ops, modules, steps = [], [], []
    for step in range(2):
        begin = 1000 * step
        ops += [
            Event("%while.1 = …", begin, 500),
            Event("%fusion.7 = f32[8] fusion(…)", begin, 200),
            Event("%convolution.2 = …", begin + 200, 300),
            Event("%all-reduce-start.1 = …", begin + 500, 10),
        ]
        modules.append(Event("jit_step(99)", begin, 600))
        steps.append(Event(str(step), begin, 600))
    plane = MadePlane(
        "/device:TPU:3",
        {
            "XLA Ops": ops,
            "Async XLA Ops": [Event("all-reduce.1", 510, 60), Event("copy.1", 0, 700)],
            "XLA Modules": modules,
            "Steps": steps,
        },
        named={
            "%fusion.7 = f32[8] fusion(…)": {"source": "/project/model.py:12"},
            "%while.1 = …": {"hlo_category": "while"},
        },
    )
    profile = profile_of(tmp_path, plane)

    assert {place: microseconds(share.seconds) for place, share in profile.lines.items()} == {
        CodePlace("/project/model.py", 12): 400
    }
    assert [(k.name, k.program, k.calls) for k in profile.kernels] == [
        ("convolution.2", "jit_step(99)", 2),
        ("fusion.7", "jit_step(99)", 2),
        ("all-reduce-start.1", "jit_step(99)", 2),
    ]
    [device] = profile.devices
    assert (device.name, device.steps_of) == ("TPU:3", "step")
    assert [(s.number, microseconds(s.busy_seconds)) for s in device.steps] == [(0, 510), (1, 510)]
    assert microseconds(device.collective_seconds) == 80
    assert microseconds(device.exposed_seconds) == 80
    assert profile.notes == ("the profile has no HLO of jit_step(99)",)


def test_a_product_of_a_cpu_lasts_until_its_threads_are_done(tmp_path: Path) -> None:
    def kernel(name: str, start: float, length: float, flow: int) -> Event:
        of = {"hlo_op": name, "hlo_module": "jit_step", "program_id": 7, "run_id": -5}
        return Event(name, start, length, {**of, "device_ordinal": 0, "_p": flow})

    lines = {
        "tf_XLAExecute/1": [kernel("gemm.2", 0, 100, 1)],
        "tf_XLAEigen/2": [
            kernel("tanh.5", 0, 10, 3),
            Event("end: tanh.5", 10, 0.1, {"_c": 3}),
            Event("ThreadpoolListener::StartRegion", 50, 0),
            Event("ThunkExecutor::Execute", 400, 100),
            kernel("fusion.1", 401, 98, 2),
            Event("end: fusion.1", 499, 0.1, {"_c": 2}),
            Event("end: gemm.2", 500.5, 0.1, {"_c": 1}),
        ],
    }
    profile = profile_of(tmp_path, PROGRAMS, MadePlane("/host:CPU", lines))

    assert {k.name: microseconds(k.seconds) for k in profile.kernels} == {
        "gemm.2": 400,
        "fusion.1": 98,
        "tanh.5": 10,
    }
    [device] = profile.devices
    assert (device.name, microseconds(device.busy_seconds)) == ("CPU:0", 498)


def test_a_loop_is_its_kernels_or_one_itself(tmp_path: Path) -> None:
    def kernel(name: str, start: float, length: float) -> Event:
        return Event(name, start, length, {"hlo_op": name, "hlo_module": "jit_f", "program_id": 1})

    lines = {
        "tf_XLAExecute/1": [
            kernel("while.1", 0, 100),
            kernel("cond.2.clone", 1, 50),
            kernel("sort.3", 2, 40),
            kernel("call.4", 110, 30),
            Event("call.4", 150, 30),  # an annotation with the name of a kernel
        ],
        "tf_XLAEigen/2": [kernel("sort.3", 55, 40)],
    }
    ops = [
        Op("while.1", "while"),
        Op("cond.2.clone", "conditional"),
        Op("sort.3", "sort"),
        Op("call.4", "call", line=2),
    ]
    programs = MadePlane("/host:metadata", programs={"jit_f(1)": program("jit_f", ops)})
    profile = profile_of(tmp_path, programs, MadePlane("/host:CPU", lines))

    assert {k.name: (k.calls, microseconds(k.seconds)) for k in profile.kernels} == {
        "sort.3": (2, 80),
        "call.4": (1, 30),
    }


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("jit(step)/transpose(jvp(MLP))/Dense_0/dot_general", "MLP/Dense_0"),
        ("jit(step)/jvp()/add", ""),
        ("jit(step)/jit(main)/while/body/Block/mul", "Block"),
        ("jit(step)/vmap(jvp(a/b))/c/add", "a/b/c"),
        ("mul;jit(train_step)/jvp(Net)/add", ""),
        ("", ""),
    ],
)
def test_modules_are_the_named_scopes(scope: str, expected: str) -> None:
    assert scope_of(scope) == expected


def test_files_that_are_no_profile(tmp_path: Path) -> None:
    with pytest.raises(NoProfile, match="does not exist"):
        files_of(tmp_path / "nothing")
    with pytest.raises(NoProfile, match="no profile in"):
        files_of(tmp_path)
    (tmp_path / "model.py").write_text("")
    with pytest.raises(NoProfile, match="is not a profile"):
        files_of(tmp_path / "model.py")
    for content in (b"", b"hello, world\n", b"\x0a\xff\xff\xff\xff\x0f", b"\xff" * 100):
        (tmp_path / "x.xplane.pb").write_bytes(content)
        with pytest.raises(NotAProfile, match="is not a profile of XLA"):
            read(files_of(tmp_path / "x.xplane.pb"))


def test_a_damaged_profile_is_an_error_or_a_profile(tmp_path: Path) -> None:
    path = write(tmp_path / "host.xplane.pb", PROGRAMS, host_plane(3), gpu_plane(0, 3))
    whole = path.read_bytes()
    generator = random.Random(0)
    for _ in range(300):
        damaged = bytearray(whole[: generator.randrange(len(whole))])
        for _ in range(generator.randrange(4)):
            if damaged:
                damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(damaged)
        try:
            read(files_of(path))
        except NotAProfile:
            continue
