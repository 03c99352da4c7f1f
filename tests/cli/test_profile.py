"""`jaxsight profile` in a terminal, of a log folder and of a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests import terminal
from tests.profiles.made import PROGRAMS, MadePlane, Op, gpu_plane, host_plane, program, write

TRAININGS = Path(__file__).parents[1] / "profiles" / "trainings"
MODEL = """\
def loss(params, x):
    # made for line numbers
    h = x + params["bias"]
    return h @ params["w"]
"""


def jaxsight(folder: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = terminal.jaxsight(*arguments, cwd=folder, COLUMNS="100")
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with a profile from another machine, and the sources of it."""
    (tmp_path / "model.py").write_text(MODEL)
    os.utime(tmp_path / "model.py", (1_700_000_000, 1_700_000_000))
    run = tmp_path / "logs" / "plugins" / "profile" / "2026_11_27_10_00_00"
    planes = [gpu_plane(device, 3, 1 + device / 10) for device in range(2)]
    write(run / "host.xplane.pb", PROGRAMS, host_plane(3), *planes)
    return tmp_path


def test_the_report(project: Path) -> None:
    report = jaxsight(project, "profile", "logs").stdout
    assert report == snapshot("""\
⏱ 3 steps of 1.10 ms · 2 GPUs busy 78 % · 4.98 ms in kernels
host host, run 2026_11_27_10_00_00, JAX 0.12.0

   time  share  calls  line        function                        \n\
2.65 ms   53 %     18  model.py:4  loss      return h @ params["w"]
1.26 ms   25 %      6  model.py:3  loss      h = x + params["bias"]
 630 µs   13 %      6  model.py:9  step                            \n\

   time  share  calls  function  file    \n\
3.91 ms   78 %     24  loss      model.py
 630 µs   13 %      6  step      model.py

   time  share  calls  module     \n\
2.65 ms   53 %     18  Net/Dense_0

   time  share  calls  program    \n\
4.72 ms   95 %     36  jit_step(7)

   time  share  calls  kernel        line            on the device          \n\
1.89 ms   38 %      6  gemm.2        model.py:4      void cutlass::gemm<128>
1.26 ms   25 %      6  fusion.1      model.py:3      loop_add_fusion        \n\
 630 µs   13 %      6  gemm.2        model.py:4      cutlass::reduce_k      \n\
 630 µs   13 %      6  all-reduce.3  model.py:9      ncclDevKernel_AllReduce
 252 µs  5.1 %      6  MemcpyH2D     transfer                               \n\
 189 µs  3.8 %      6  tanh.5        library flax    tanh                   \n\
 126 µs  2.5 %      6  copy.4        for model.py:4  loop_copy              \n\

device  step   steps   median  fastest             slowest  idle
GPU:1   train      3  1.10 ms   924 µs  1.10 ms (step 100)  22 %
GPU:0   train      3  1.00 ms   840 µs  1.00 ms (step 100)  22 %

device     time  busy  idle between programs  idle inside
GPU:0   2.84 ms  78 %                 320 µs       300 µs
GPU:1   3.12 ms  78 %                 352 µs       330 µs

device  collectives  share  overlapped
GPU:1        330 µs   11 %        50 %
GPU:0        300 µs   11 %        50 %

host                                 time
host  waiting for results  1 time  900 µs

91 % of the time in kernels at lines of your files, 3.8 % in flax, 5.1 % in transfers
steps of GPU:1 take 1.05 times those of the median device
""")


def test_json_has_all_figures(project: Path) -> None:
    record = json.loads(jaxsight(project, "profile", "logs", "--json").stdout)

    assert record["kernel_seconds"] == pytest.approx(3 * 790e-6 * (1 + 1.1))
    parts = ("line", "library", "transfer", "unmatched")
    assert sum(record[f"{part}_seconds"] for part in parts) == pytest.approx(
        record["kernel_seconds"]
    )
    first = record["lines"][0]
    assert (first["file"], first["line"], first["function"]) == ("/project/model.py", 4, "loss")
    assert first["path"] == str(project / "model.py")
    assert first["text"] == 'return h @ params["w"]'
    assert first["share"] == pytest.approx(first["seconds"] / record["kernel_seconds"])
    slowest = record["slowest_device"]
    assert (slowest["host"], slowest["device"]) == ("host", "GPU:1")
    assert slowest["of_median"] == pytest.approx(1.1 / 1.05)
    [host] = record["hosts"]
    assert host["work"] == [{"kind": "results", "calls": 1, "seconds": pytest.approx(900e-6)}]
    [kernel] = [each for each in record["kernels"] if each["name"] == "copy.4"]
    assert (kernel["line"], kernel["for_line"], kernel["opcode"]) == (4, True, "copy")


def test_a_line_of_a_file_that_has_changed_is_not_shown(project: Path) -> None:
    planes = PROGRAMS, gpu_plane(0, 3)
    path = write(project / "host.xplane.pb", *planes)
    started = 1_690_000_000 * 10**9
    environment = {"profile_start_time": started, "profile_stop_time": started + 10**9}
    write(path, *planes, MadePlane("Task Environment", own=environment))
    done = jaxsight(project, "profile", path.name)
    assert "params[" not in done.stdout
    assert "/project/model.py has changed since the profile was recorded" in done.stdout


def test_what_is_no_profile_is_one_line(project: Path) -> None:
    (project / "broken.xplane.pb").write_bytes(b"\x0a\xff\x01")
    for name, message in (
        ("nothing", "nothing does not exist"),
        ("model.py", "model.py is not a profile; expected a file `HOST.xplane.pb`"),
        ("broken.xplane.pb", "broken.xplane.pb is not a profile of XLA: it is cut off"),
    ):
        done = jaxsight(project, "profile", name, status=2)
        assert done.stderr == f"error: {message}\n"


def test_texts_of_a_profile_are_inert(project: Path) -> None:
    hostile = "\x1b[31mred\u202e"
    ops = [Op("fusion.1", line=3, file=f"/project/{hostile}.py", function=hostile)]
    programs = MadePlane("/host:metadata", programs={"jit_step(7)": program("jit_step", ops)})
    path = write(project / "host.xplane.pb", programs, gpu_plane(0, 1), host=hostile)
    done = jaxsight(project, "profile", path.name)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs `sys.monitoring`")
@pytest.mark.parametrize("training", ["plain", "with_flax", "with_equinox"])
def test_steps_of_a_training_are_profiled(tmp_path: Path, training: str) -> None:
    (tmp_path / "train.py").write_text((TRAININGS / f"{training}.py").read_text())
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    done = jaxsight(tmp_path, "profile", "--run", "--steps", "4", "--", "python", "train.py")
    assert done.stdout.startswith("loss ")
    assert "profiled 4 calls of train_step" in done.stderr

    record = json.loads(jaxsight(tmp_path, "profile", ".jaxsight/profiles", "--json").stdout)
    named = record["line_seconds"] + record["library_seconds"]
    assert named >= 0.95 * record["kernel_seconds"] > 0
    [device] = record["devices"]
    assert device["steps_of"] == "train_step"
    assert [step["number"] for step in device["steps"]] == [0, 1, 2, 3]
    assert all(step["busy_seconds"] <= step["seconds"] for step in device["steps"])
    assert record["lines"][0]["path"] == str(tmp_path / "train.py")


def test_a_program_without_steps_has_no_profile(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint('done')\nsys.exit(5)\n")
    arguments = ("--run", "--step", "f", "--", "python", "train.py")
    done = jaxsight(tmp_path, "profile", *arguments, status=5)
    assert done.stdout == "done\n"
    assert "no profile: `f` was not called four times outside of others" in done.stderr


def test_a_program_needs_the_option_that_runs_it(tmp_path: Path) -> None:
    done = jaxsight(tmp_path, "profile", "python", "train.py", status=2)
    assert done.stderr == "error: several arguments; to profile a program, write `--run` first\n"
