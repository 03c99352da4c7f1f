"""Programs that fail are captured without editing them, and leave a repro that fails as they did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jaxsight_repro.programs import SERVER, body, extract, jaxsight

BOOT = SERVER / "jaxsight" / "boot.py"

DEBUG_NANS = """\
import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)


@jax.jit
def step(x):
    return jnp.log(x - 2.0)


print("before")
step(jnp.ones(3))
"""


@pytest.mark.slow
def test_an_exception_is_reproduced(tmp_path: Path) -> None:
    done = extract(tmp_path, DEBUG_NANS)
    assert done.code == 0, done.stderr
    assert done.stdout.startswith("before\n")
    last = done.stdout.strip().split("\n")[-1]
    assert last == "repro.py: FloatingPointError: invalid value (nan) encountered in log"
    assert (
        body(done.repro)
        == """\
import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)


def main(x0):
    return jnp.log(x0)


def inputs():
    return (
        jnp.array([-1.0, -1.0, -1.0], dtype=jnp.float32),  # x0
    )


if __name__ == "__main__":
    jax.block_until_ready(main(*inputs()))"""
    )


KERNEL = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, out_ref, sum_ref):
    sum_ref[...] = x_ref[...] * 2
    out_ref[...] = sum_ref[...]


spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
call = pl.pallas_call(
    kernel,
    jax.ShapeDtypeStruct((16, 128), jnp.float32),
    grid=(2,),
    in_specs=[spec],
    out_specs=spec,
    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
)
jax.jit(call)(jnp.ones((16, 128)))
"""


@pytest.mark.slow
def test_a_pallas_kernel_is_a_function_of_the_repro(tmp_path: Path) -> None:
    done = extract(tmp_path, KERNEL)
    assert done.code == 0, done.stderr
    last = done.stdout.strip().split("\n")[-1]
    assert last == "repro.py: ValueError: Only interpret mode is supported on CPU backend."
    text = body(done.repro)
    assert "def kernel(x_ref, out_ref, sum_ref):" in text
    assert "scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)]" in text


@pytest.mark.slow
def test_the_traceback_is_the_programs_own(tmp_path: Path) -> None:
    done = extract(tmp_path, DEBUG_NANS)
    assert "program.py" in done.stderr
    assert "jaxsight" not in done.stderr


CRASH = """\
import os
import os
import signal

import jax
import jax.numpy as jnp
from jax._src import compiler


def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGSEGV)


@jax.jit
def fine(x):
    return x + 1


@jax.jit
def fatal(x, w):
    def body(carry, row):
        return jnp.sin(carry) * row, carry.sum()

    return jax.lax.scan(body, x, w)


x = fine(jnp.zeros(3))
w = jnp.ones((4, 3))
compiler.backend_compile_and_load = die
fatal(x, w)
"""


@pytest.mark.slow
def test_a_crash_leaves_the_program_that_was_compiled(tmp_path: Path) -> None:
    done = extract(tmp_path, CRASH)
    # The crash is not JAX's own, so the file does not crash, and says so.
    assert done.code == 1
    assert "does not fail in the same way: finished, expected killed by SIGSEGV" in done.stdout
    assert "def fatal(x, w):" in done.repro
    assert "lax.scan(" in done.repro


HANG = """\
import jax
import jax.numpy as jnp


@jax.jit
def spin(x):
    return jax.lax.while_loop(lambda v: v[0] < 2, lambda v: v * 0.5, x)


spin(jnp.ones(3))
"""


@pytest.mark.slow
def test_a_hang_leaves_the_program_that_ran(tmp_path: Path) -> None:
    done = extract(tmp_path, HANG, "--timeout", "6")
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout == "repro.py: did not finish within 6 s\n"
    assert "lax.while_loop" in done.repro


def test_a_program_without_an_error_has_no_repro(tmp_path: Path) -> None:
    done = extract(tmp_path, "import jax\njax.numpy.ones(3)\n")
    assert done.code == 2
    assert done.stderr == "error: the program finished without an error\n"


def test_an_error_outside_of_jax_has_no_repro(tmp_path: Path) -> None:
    done = extract(tmp_path, "import jax\njax.numpy.ones(3)\nraise KeyError('a')\n")
    assert done.code == 2
    assert "KeyError" in done.stderr
    assert "error: the exception was raised outside of JAX" in done.stderr


def test_arguments_and_exit_status_are_the_programs(tmp_path: Path) -> None:
    program = "import sys\nprint(sys.argv, __name__)\nsys.exit(3)\n"
    (tmp_path / "program.py").write_text(program)
    case = tmp_path / "case"
    command = [
        sys.executable,
        str(BOOT),
        "repro",
        "run",
        "script",
        str(case),
        "--",
        "program.py",
        "-x",
        "1",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stdout == "['program.py', '-x', '1'] __main__\n"


COUNTING = """\
import jax
import jax.numpy as jnp

traces = []
compiles = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, *_, **__: compiles.append(name) if "backend_compile" in name else None
)


@jax.jit
def f(x, n):
    traces.append(1)
    return x * n


@jax.custom_vjp
def g(x):
    return x


g.defvjp(lambda x: (x, x), lambda residual, cotangent: (cotangent * residual,))
for n in range(3):
    for size in (2, 3, 2):
        y = jax.grad(lambda x: g(f(x, n)).sum())(jnp.ones(size))
print(len(traces), len(compiles), y)
"""


def test_capture_changes_neither_results_nor_compilations(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(COUNTING)
    plain = [sys.executable, "program.py"]
    captured = [
        sys.executable,
        str(BOOT),
        "repro",
        "run",
        "script",
        str(tmp_path / "case"),
        "--",
        "program.py",
    ]
    outputs = [
        subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for command in (plain, captured)
    ]
    assert outputs[0] == outputs[1]
    assert "0" not in outputs[0].split()[:2]  # traces and compilations were counted


@pytest.mark.slow
def test_a_module_runs_as_with_python_m(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").write_text(DEBUG_NANS)
    done = jaxsight(
        tmp_path, "repro", "run", "--python", sys.executable, "-m", "package.train", "--lr", "1"
    )
    assert done.code == 0, done.stderr
    assert (tmp_path / "repro.py").exists()


TESTS = """\
import jax
import jax.numpy as jnp
import pytest


def test_passes():
    assert jnp.ones(3).sum() == 3


def test_fails_in_python():
    assert 1 == 2


@pytest.mark.parametrize("size", [3])
def test_fails_in_jax(size):
    with jax.debug_nans(True):
        jnp.sqrt(-jnp.ones(size))
"""


@pytest.mark.slow
def test_each_failing_test_that_reached_jax_leaves_a_repro(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(TESTS)
    options = ["--python", sys.executable, "-o", "found", "--pytest"]
    done = jaxsight(tmp_path, "repro", "run", *options, "-p", "no:cacheprovider", "test_x.py")
    assert done.code == 0, done.stdout + done.stderr
    assert [path.name for path in (tmp_path / "found").glob("*.py")] == [
        "test_x-test_fails_in_jax-3.py"
    ]


@pytest.mark.slow
def test_a_function_is_called_with_its_example_inputs(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        '''\
import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)


def loss(x, scale=2.0):
    """
    Example inputs:
        x: f32[40]
    """
    return jnp.sum(jnp.sqrt(x) * scale)
'''
    )
    done = jaxsight(tmp_path, "repro", "model.py:loss", "--python", sys.executable)
    assert done.code == 0, done.stderr
    repro = (tmp_path / "repro.py").read_text()
    assert "jnp.sqrt(x" in repro
    assert "jax.random.normal(jax.random.key(1), (40,))" in repro


def test_a_killed_program_leaves_what_it_executed(tmp_path: Path) -> None:
    program = (
        "import os, signal\nimport jax\njax.numpy.ones(3)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = extract(tmp_path, program)
    assert done.code == 1
    assert "expected killed by SIGKILL" in done.stdout
    assert "jnp.broadcast_to(x0, (3,))" in done.repro


FORKING = """\
import os
import os
import signal
import time

import jax

jax.numpy.ones(3)
signal.signal(signal.SIGINT, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.closerange(0, 100)
        time.sleep(600)
with open("started", "w") as file:
    file.write(str(os.getpid()))
time.sleep(600)
"""


@pytest.mark.slow
def test_a_program_that_forks_and_never_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    done = extract(tmp_path, FORKING, "--timeout", "6")
    assert done.code == 1
    assert "expected did not finish within 6 s" in done.stdout
    started = int((tmp_path / "started").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(started, 0)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in listed.stdout


AHEAD_OF_TIME = """\
import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)


def step(x):
    return jnp.log(x - 2.0)


compiled = jax.jit(step).lower(jnp.ones(3)).compile()
with open("compiled", "w") as file:
    file.write(compiled.as_text())
import os

os.abort()
"""


@pytest.mark.slow
def test_what_is_compiled_ahead_of_time_is_captured(tmp_path: Path) -> None:
    done = extract(tmp_path, AHEAD_OF_TIME)
    assert "expected killed by SIGABRT" in done.stdout
    assert "def step(x):" in done.repro


@pytest.mark.slow
def test_pytest_writes_repros_with_an_option(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(TESTS)
    plugins = ["-p", "no:cacheprovider"]  # jaxsight's own is an entry point
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *plugins,
        "--jaxsight-repro=found",
        "test_x.py",
    ]
    variables = {**os.environ, "PYTHONPATH": str(SERVER)}
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    written = tmp_path / "found" / "test_x-test_fails_in_jax-3.py"
    assert f"test_x.py::test_fails_in_jax[3]: {written}\n" in done.stdout
    assert "jnp.sqrt(" in written.read_text()


CONTEXT = """\
import jax
import jax.numpy as jnp

import jaxsight_repro

jax.config.update("jax_debug_nans", True)
double = jax.jit(lambda x: x * 2)
root = jax.jit(lambda x: jnp.sqrt(x))
root(double(jnp.ones(3)))
with jaxsight_repro.capture("here.py"):
    root(-double(jnp.ones(3)))
"""


@pytest.mark.slow
def test_a_context_writes_a_repro_of_the_exception_that_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CONTEXT)
    variables = {**os.environ, "PYTHONPATH": str(SERVER)}
    command = [sys.executable, "program.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"jaxsight: {tmp_path / 'here.py'}\n" in done.stderr
    assert "jnp.sqrt(" in (tmp_path / "here.py").read_text()


SHARDED = """\
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.make_mesh((4,), ("data",))
x = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, PartitionSpec("data")))


@partial(jax.jit, donate_argnums=0, static_argnums=2)
def step(x, key, count):
    return x * count + jax.random.normal(key, x.shape), jnp.log(-jnp.sum(x))


step(x, jax.random.key(7), 3)
"""


@pytest.mark.slow
def test_devices_shardings_keys_and_donation_are_kept(tmp_path: Path) -> None:
    done = extract(tmp_path, SHARDED, "--check", "nan")
    assert done.code == 0, done.stdout + done.stderr
    for words in (
        "--xla_force_host_platform_device_count=4",
        'jax.make_mesh((4,), ("data",), axis_types=(',
        "donate_argnums=0",
        "jax.random.key(7)",
        "x * 3.0",
    ):
        assert words in done.repro


UNCAPTURED = """\
import os

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive

local = Primitive("local")
local.def_impl(lambda x: os.abort())
jnp.ones(3) + 1
local.bind(jnp.ones(3))
"""


def test_an_execution_that_cannot_be_captured_is_not_taken_for_the_one_before(
    tmp_path: Path,
) -> None:
    done = extract(tmp_path, UNCAPTURED)
    assert done.code == 2
    assert done.stderr.endswith("error: the execution in flight could not be captured\n")
    assert not done.repro


HANG_TRACING = """\
import jax
import jax.numpy as jnp


@jax.jit
def f(x, blocks):
    y = jnp.sin(x)
    return jnp.einsum(SUMS, *blocks, optimize="optimal") + y.sum()


letters = "abcdefghijklmnopqrstuvwxyz"
SUMS = ",".join(letters[i] + letters[(i * 7 + 3) % 20] + letters[i + 2] for i in range(18)) + "->"
f(jnp.ones(3), [jnp.ones((2, 2, 2))] * 18)
"""


@pytest.mark.slow
def test_a_hang_while_tracing_leaves_the_calls(tmp_path: Path) -> None:
    done = extract(tmp_path, HANG_TRACING, "--timeout", "15")
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.startswith("repro.py: did not finish within ")
    assert "jnp.einsum(" in done.repro
    assert "jnp.sin" not in done.repro


CRASH_TRACING = """\
import os
import signal

import jax
import jax.numpy as jnp

jnp.ones(3)


@jax.jit
def f(x):
    os.kill(os.getpid(), signal.SIGSEGV)
    return x


f(1.0)
"""


def test_a_crash_while_tracing_has_no_repro_but_a_line(tmp_path: Path) -> None:
    done = extract(tmp_path, CRASH_TRACING)
    assert done.code == 2
    died = "the process died while JAX traced, at program.py:12 in f"
    assert done.stderr.endswith(f"error: {died}\n")
    assert not done.repro


@pytest.mark.slow
def test_a_script_that_crashes_while_jax_traces_is_reduced(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CRASH_TRACING)
    python = ["--python", sys.executable]
    done = jaxsight(tmp_path, "repro", "reduce", *python, "-o", "least.py", "program.py")
    assert done.code == 0, done.stderr
    assert done.stdout.startswith("least.py: killed by SIGSEGV\n")
    assert "jnp.ones" not in (tmp_path / "least.py").read_text()
