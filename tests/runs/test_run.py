"""Runs of real programs: what is collected of them, and that they run as they would otherwise."""

from __future__ import annotations

import base64
import json
import os
import platform
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from jaxsight.cli.errors import CommandError
from jaxsight.cli.reporting.run_report import report_run
from jaxsight.runs.collected import RunProcess, collect, read
from jaxsight.runs.merging import CompiledFunction, merged

SERVER = Path(__file__).parents[2] / "server"

PROGRAM = """\
import functools, os, signal, sys
import jax, jax.numpy as jnp

@functools.partial(jax.jit, static_argnames="n")
def power(x, scale, n=1):
    return x ** n * scale

@jax.jit
def product(p):
    return jnp.tanh(p["x"] @ p["y"])

x = jnp.ones(8)
power(x, 2.0)
power(x, jnp.float32(2))
power(jnp.ones(9), 2.0)
power(x, 2.0, n=3)
power(x, 2.0, n=4)
product({"x": jnp.ones((4, 4)), "y": jnp.ones((4, 4))})
for _ in range(2):
    jax.jit(lambda t: t + 1)(x)
print("done")
sys.stdout.flush()
sys.argv[1:] == ["kill"] and os.kill(os.getpid(), signal.SIGKILL)
product({"x": x, "y": jnp.ones(9)})
"""

SEVERAL = """\
import multiprocessing, sys

def work(n):
    import jax, jax.numpy as jnp
    jax.jit(tanh)(jnp.ones(8))

def tanh(x):
    import jax.numpy as jnp
    return jnp.tanh(x)

if __name__ == "__main__":
    processes = [multiprocessing.get_context("spawn").Process(target=work, args=(n,)) for n in (0, 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
"""


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "JAX_PLATFORMS": "cpu", **variables}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[RunProcess]]:
    file = tmp_path_factory.mktemp("run") / "train.py"
    file.write_text(PROGRAM)
    summary, processes = collect([sys.executable, str(file)], environment())
    return summary.status, processes


def function(processes: list[RunProcess], name: str) -> CompiledFunction:
    (found,) = (each for each in merged(processes) if each.name == name)
    return found


def reasons(function: CompiledFunction) -> list[list[str]]:
    return [
        [str(change) for change in each.reason.changes] if each.reason is not None else []
        for _, each in function.recompilations
    ]


def test_a_recompilation_says_which_argument_changed_how(
    ran: tuple[int, list[RunProcess]],
) -> None:
    assert reasons(function(ran[1], "power")) == [
        ["`scale` was a Python scalar, now an array of f32[]"],
        ["`x` changed shape: f32[8] → f32[9]"],
        ["static argument `n` changed: not passed → 3"],
        ["static argument `n` changed: 3 → 4"],
    ]


def test_a_function_that_is_created_again_is_one_program_compiled_twice(
    ran: tuple[int, list[RunProcess]],
) -> None:
    found = function(ran[1], "<lambda>")
    (program,) = found.programs
    assert len(program.compilations) == 2
    assert reasons(found) == [["the function was created again on the same line"]]


def test_a_program_has_its_place_signature_figures_and_texts(
    ran: tuple[int, list[RunProcess]],
) -> None:
    (merged_program,) = function(ran[1], "product").programs
    program = merged_program.first
    assert program.defined is not None
    assert (Path(program.defined.file).name, program.defined.line) == ("train.py", 8)
    assert [(Path(each.file).name, each.line) for each in program.called] == [("train.py", 18)]
    assert program.arguments == (("p['x']", "f32[4,4]"), ("p['y']", "f32[4,4]"))
    assert program.results == ("f32[4,4]",)
    assert (program.memory.arguments, program.memory.outputs) == (128, 64)
    assert program.platform == "cpu"
    assert program.trace is not None
    assert program.lower is not None
    assert program.compile > 0
    assert program.hlo.startswith("HloModule jit_product")
    assert "tanh" in program.jaxpr


def test_an_exception_leaves_what_was_compiled_and_the_exit_status(
    ran: tuple[int, list[RunProcess]],
) -> None:
    status, (process,) = ran
    assert status == 1
    assert process.ended is not None
    assert not process.errors


def jaxsight(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jaxsight", "report", "--run", *arguments],
        cwd=folder,
        env=environment(PYTHONPATH=str(SERVER), JAXSIGHT_TRUST="always", **variables),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_killed_program_leaves_a_page_and_its_own_output(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    ran = jaxsight(tmp_path, "-o", "run.html", "--", sys.executable, "train.py", "kill")
    assert (ran.returncode, ran.stdout) == (137, "done\n")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("jaxsight: ")
    assert line.endswith(": run.html")
    page = (tmp_path / "run.html").read_text()
    assert "killed, crashed, or by os._exit" in page
    assert "<code>x</code> changed shape: f32[8] → f32[9]" in page


SECRET = """\
import functools, jax, jax.numpy as jnp

@functools.partial(jax.jit, static_argnames="file")
def loss(x, file):  # by Sophia
    return jnp.tanh(x)

for size in (4, 5):
    loss(jnp.ones(size), file="/vault/falcon/weights.bin")
try:
    jax.jit(lambda x: jnp.fft.fft(x, 0))(jnp.ones(()))
except ValueError:
    pass
"""


def test_an_anonymous_page_names_no_folder_user_or_comment(tmp_path: Path) -> None:
    folder = tmp_path / "Falcon-Project" / "src"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(SECRET)
    command = [sys.executable, "Falcon-Project/src/train.py", "--data=/vault/falcon/sophia.npz"]
    done = jaxsight(
        tmp_path, "--anonymize", "-o", "run.html", "--", *command, "s3://falcon/x", LOGNAME="sophia"
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "run.html").read_text()
    (data,) = re.findall(r'id="texts">(.*?)</script>', page)
    texts = [zlib.decompress(base64.b64decode(each), -15).decode() for each in json.loads(data)]
    assert any("HloModule jit_loss" in text for text in texts)
    shown = "\n".join([page.replace(data, ""), *texts])
    assert "<code>python train.py --data=user.npz" in re.sub(r"python3[\d.]*", "python", shown)
    assert "'weights.bin'" in shown.replace("&#x27;", "'")
    assert "changed shape" in shown
    words = ["falcon", "vault", "sophia", tmp_path.name, sys.prefix, platform.node()]
    assert [word for word in words if word.lower() in shown.lower()] == []


def test_processes_are_merged(tmp_path: Path) -> None:
    (tmp_path / "several.py").write_text(SEVERAL)
    summary, processes = collect([sys.executable, str(tmp_path / "several.py")], environment())
    assert summary.status == 0
    (program,) = function(processes, "tanh").programs
    assert [each.process for each in program.compilations] == [0, 1]
    assert not function(processes, "tanh").recompilations


def test_a_run_of_pytest_warns_of_nothing_more(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import jax\ndef test_it():\n    jax.jit(abs)(-1.0)\n")
    warned = "error::pytest.PytestAssertRewriteWarning"
    command = [sys.executable, "-m", "pytest", "-q", "-W", warned, str(tmp_path)]
    summary, processes = collect(command, environment(PYTHONPATH=str(SERVER)))
    assert summary.status == 0
    assert len(processes) == 1


def test_what_cannot_run_or_be_written_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^cannot run no-such-program: No such file or"):
        report_run(["no-such-program"], tmp_path / "run.html", sys.executable, anonymize=False)
    with pytest.raises(CommandError, match=r"^cannot write .*run\.html: not a file in a writable"):
        report_run(["true"], tmp_path / "no" / "run.html", sys.executable, anonymize=False)
    assert list(tmp_path.iterdir()) == []


def test_a_program_without_jax_has_no_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_run(["true"], tmp_path / "run.html", sys.executable, anonymize=False) == 1
    assert capsys.readouterr().err == (
        "error: the program did not import JAX; no page is written\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_files_of_another_form_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "1-a.programs").write_bytes(b"\x00\xff\neJw=\nnot base64\n")
    assert read(tmp_path) == []
