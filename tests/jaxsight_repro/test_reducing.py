"""Reduces small programs, in processes like those of `jaxsight repro reduce`."""

from __future__ import annotations

import ast
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BOOT = Path(__file__).parents[2] / "server/jaxsight/boot.py"

NAN = '''\
"""NaN in the logarithm of a difference."""

import jax
import jax.numpy as jnp
import numpy as np


def layer(x, i):
    x = jnp.tanh(x * 0.5 + i) + jnp.cos(x)
    return x - x.mean()


def main(x):
    for i in range(3):
        x = layer(x, i)
    y = jax.nn.relu(jnp.log(x - 10.0))
    for i in range(3):
        x = layer(x, i)
    return x, y


def inputs():
    return (np.linspace(0, 1, 12).reshape(3, 4).astype(np.float32),)


if __name__ == "__main__":
    jax.block_until_ready(main(*inputs()))
'''

LOOP = """\
import jax
import jax.numpy as jnp


def main(x, ts):
    def step(carry, t):
        h, n = carry
        h = jnp.tanh(h) + t
        bad = jax.lax.cond(n >= 0, lambda h: jnp.log(-1.0 - h * h), lambda h: h, h)
        return (h * 0.5, n + 1), (bad, h.sum())

    (h, _), (bad, total) = jax.lax.scan(step, (x, 0), ts)
    return h, jax.jit(jnp.mean)(bad), total


def inputs():
    return jnp.ones(4), jnp.ones((5, 4))


if __name__ == "__main__":
    main(*inputs())
"""

SHAPES = '''\
"""Two shapes do not match, and then two others."""

import jax
import jax.numpy as jnp


def scale(a):
    return a * 2.0 + 1.0


def join(a, b):
    a = scale(a)
    c = jnp.concatenate([b, b])
    d = a @ c
    return d


@jax.jit
def step(x):
    y = jnp.sin(x)
    z = scale(y) - jnp.cos(x)
    out = join(z, jnp.ones(3))
    late = jnp.stack([out, jnp.ones((7, 7))])
    return late


def main(x):
    return step(x)


def inputs():
    return (jnp.ones((4, 8)),)


if __name__ == "__main__":
    jax.block_until_ready(main(*inputs()))
'''


KERNEL = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, y_ref, out_ref):
    large = jnp.exp(jnp.sin(y_ref[...]) * 3.0)
    out_ref[...] = jnp.log(x_ref[...]) + large


def main(x, y):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    out_shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = pl.pallas_call(
        kernel, out_shape, grid=(2,), in_specs=[spec, spec], out_specs=spec, interpret=True
    )
    return jnp.tanh(call(x, y))


def inputs():
    return -jnp.ones((16, 128)), jnp.ones((16, 128))


if __name__ == "__main__":
    jax.block_until_ready(main(*inputs()))
"""


def number(text: str) -> Any:
    """Return the number that a text is, if it is one."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@contextmanager
def reducing(folder: Path, source: str, *options: str, name: str = "out.py") -> Iterator[Any]:
    file = folder / "repro.py"
    file.write_text(source)
    named = dict(zip(options[::2], options[1::2], strict=True))
    chosen = {option.removeprefix("--"): number(value) for option, value in named.items()}
    paths = str(file), str(folder / name)
    command = [sys.executable, str(BOOT), "repro", "reduce", *paths, json.dumps(chosen)]
    (folder / "tmp").mkdir(exist_ok=True)
    variables = {**os.environ, "JAX_PLATFORMS": "cpu", "TMPDIR": str(folder / "tmp")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def reduced(folder: Path, source: str, *options: str, name: str = "out.py") -> tuple[Any, str]:
    """Return the last event, and the text of the reduced file."""
    with reducing(folder, source, *options, name=name) as process:
        stdout, _ = process.communicate(timeout=240)
    event = json.loads(stdout.strip().split("\n")[-1])
    assert event["event"] == "done", event
    assert not list((folder / "tmp").iterdir())
    return event, (folder / name).read_text()


TARGETS = """\
import jax
import jax.numpy as jnp


def main(x):
    return jnp.sort(jnp.sin(x) @ x)


def inputs():
    return (jnp.ones((8, 8)),)


if __name__ == "__main__":
    jax.block_until_ready(main(*inputs()))
"""


@pytest.mark.slow
def test_a_check_compiles_for_several_devices(tmp_path: Path) -> None:
    _, text = reduced(tmp_path, TARGETS, "--check", "hlo:cpu:8: sort")
    assert "jaxsight.kernels(main, target='cpu:8')" in text
    assert '"jaxsight",' in text
    assert "jnp.sin" not in text


@pytest.mark.slow  # a compiler for GPUs starts for each candidate
def test_a_check_compiles_for_a_gpu_that_is_not_here(tmp_path: Path) -> None:
    event, text = reduced(tmp_path, TARGETS, "--check", "hlo:cuda:h100:gemm")
    assert event["after"] == 1
    assert "x @ x" in text


def interrupted(folder: Path, source: str, *options: str) -> Any:
    """Interrupt a reduction once a candidate was smaller; return the last event."""
    with reducing(folder, source, *options) as process:
        counts: list[int] = []
        while len(set(counts)) < 2:
            event = json.loads(process.stdout.readline())
            counts += [event["equations"]] if "equations" in event else []
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=120)
    event = json.loads(stdout.strip().split("\n")[-1])
    assert event["interrupted"]
    assert event["after"] <= counts[-1] < counts[0]
    return event


def function(text: str, name: str) -> str:
    """Return the statements of a function."""
    node = next(
        n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == name
    )
    return "\n".join(map(ast.unparse, node.body))


@pytest.mark.slow
def test_only_the_equation_that_returns_nan_is_left(tmp_path: Path) -> None:
    event, text = reduced(tmp_path, NAN, "--check", "nan")
    assert function(text, "main") == "return (jnp.log(x),)"
    assert "-1.0" in function(text, "inputs")
    assert "[" not in function(text, "inputs")
    assert (event["after"], event["unit"], event["minimal"]) == (1, "equations", True)
    assert event["failure"]["message"] == "NaN in result[0]"
    done = subprocess.run(
        [sys.executable, tmp_path / "out.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "AssertionError: NaN in result[0]" in done.stderr


@pytest.mark.slow
def test_equations_of_a_pallas_kernel_are_deleted(tmp_path: Path) -> None:
    _, text = reduced(tmp_path, KERNEL, "--check", "nan")
    kernel = function(text, "kernel")
    assert "jnp.log(x_ref[...])" in kernel
    assert "sin" not in kernel
    assert "y_ref" not in text
    assert "tanh" not in text
    assert "grid=(1,)" in text
    assert "pl.BlockSpec((1, 1), " in text


@pytest.mark.slow
def test_a_kernel_keeps_the_positions_of_its_grid_that_fail(tmp_path: Path) -> None:
    source = (
        KERNEL.replace("jnp.log(x_ref[...])", "x_ref[...] * jnp.sqrt(1.0 - pl.program_id(0))")
        .replace("16, 128", "64, 128")
        .replace("grid=(2,)", "grid=(8,)")
    )
    _, text = reduced(tmp_path, source, "--check", "nan")
    assert "grid=(3,)" in text
    assert "pl.BlockSpec((1, 1), " in text


@pytest.mark.slow
def test_a_program_without_results_keeps_what_fails(tmp_path: Path) -> None:
    source = NAN.replace("return x, y", "jnp.sqrt(y - 3.0)")
    settings = 'import numpy as np\n\njax.config.update("jax_debug_nans", True)\n'
    event, text = reduced(tmp_path, source.replace("import numpy as np\n", settings))
    assert event["after"] == 1
    assert event["failure"]["name"] == "FloatingPointError"
    assert "return (jnp.log(x),)" in text


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    one = reduced(tmp_path, NAN, "--check", "nan", "--jobs", "1")[1]
    assert reduced(tmp_path, NAN, "--check", "nan", "--jobs", "3", name="three.py")[1] == one


@pytest.mark.slow
def test_a_branch_in_a_loop_is_unwrapped(tmp_path: Path) -> None:
    event, text = reduced(tmp_path, LOOP, "--check", "nan")
    assert event["after"] == 1
    assert "jnp.log" in function(text, "main")
    assert "scan" not in text


COUNTED = """\
import jax
import jax.numpy as jnp


def main(x):
    def step(carry):
        count, x = carry
        return count - 1, jnp.log(x)

    return jax.lax.while_loop(lambda carry: carry[0] > 1000, step, (2000, x))


def inputs():
    return (2.0 + jnp.ones(4),)


if __name__ == "__main__":
    jax.block_until_ready(main(*inputs()))
"""


@pytest.mark.slow
def test_a_while_gets_smaller_bounds(tmp_path: Path) -> None:
    _, text = reduced(tmp_path, COUNTED, "--check", r"hlo:cpu:(?s)direction=GT.* while\(")
    assert "while_loop" in text
    assert "000" not in function(text, "main")


@pytest.mark.slow
def test_a_fixed_number_of_iterations_replaces_a_condition(tmp_path: Path) -> None:
    _, text = reduced(tmp_path, COUNTED, "--check", r"hlo:cpu: while\(")
    assert "while_loop" not in text
    assert "length=2" in text


RANKS = """\
import jax
import jax.numpy as jnp


def main(x, w):
    y = jnp.transpose(jnp.sort(x, axis=1) + 1.0, (1, 0, 2))
    z = jnp.einsum("abc,cd->abd", y, w)
    return jnp.cumsum(z[:, None] * 2.0, axis=0).sum(axis=2)


def inputs():
    return jnp.ones((4, 3, 2)), jnp.ones((2, 5))


if __name__ == "__main__":
    jax.block_until_ready(main(*inputs()))
"""


@pytest.mark.slow
def test_axes_of_arrays_are_removed(tmp_path: Path) -> None:
    _, text = reduced(tmp_path, RANKS, "--check", "hlo:cpu:(?s) sort")
    assert "[0.0, 0.0]" in function(text, "inputs")
    assert "[[" not in text


@pytest.mark.slow
def test_statements_around_an_error_at_trace_are_deleted(tmp_path: Path) -> None:
    event, text = reduced(tmp_path, SHAPES)
    assert event["unit"] == "statements"
    assert event["failure"]["name"] == "TypeError"
    assert "dot_general requires contracting dimensions" in event["failure"]["message"]
    assert function(text, "main") in (
        "jnp.zeros((1,)) @ jnp.zeros((2,))",
        "jnp.zeros((2,)) @ jnp.zeros((1,))",
    )
    assert "def step" not in text


PACKED = """\
import base64
import zlib
import jax
import jax.numpy as jnp
import numpy as np


def main(a, b):
    return jnp.sin(a) @ jnp.cos(b)


def _unpack(data, dtype, shape):
    raw = zlib.decompress(base64.b85decode(data))
    return jnp.asarray(np.frombuffer(raw, np.dtype(dtype)).reshape(shape))


_A = _unpack("c-muNIPjl=0t^6deH-x", jnp.float32, (4, 4))


def inputs():
    return (_A, jnp.ones((3, 3), jnp.float32))


if __name__ == "__main__":
    jax.block_until_ready(main(*inputs()))
"""
"""Shapes that do not match, of arrays one of which is compressed."""


@pytest.mark.slow
def test_data_that_an_error_at_trace_does_not_depend_on_is_deleted(tmp_path: Path) -> None:
    event, text = reduced(tmp_path, PACKED)
    assert event["unit"] == "statements"
    assert "zlib" not in text


WIDE = """\
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def main(x):
    y = jnp.sin(x)
    return jax.lax.add(y, jnp.ones(3))


def inputs():
    return (jnp.ones(3, dtype=jnp.float32),)


if __name__ == "__main__":
    main(*inputs())
"""


@pytest.mark.slow
def test_settings_that_the_failure_needs_are_kept(tmp_path: Path) -> None:
    event, text = reduced(tmp_path, WIDE)
    assert event["unit"] == "statements"
    assert "sin" not in text
    assert 'jax.config.update("jax_enable_x64", True)' in text.replace("'", '"')


@pytest.mark.slow
def test_another_error_is_kept_aside(tmp_path: Path) -> None:
    event, text = reduced(tmp_path, SHAPES, "--check", "exception")
    assert "dot_general" in event["failure"]["message"]
    assert "@" in text
    headlines = [Path(path).read_text().split('"""')[1].split("\n")[0] for path in event["others"]]
    assert headlines
    assert not any("dot_general requires" in headline for headline in headlines)


@pytest.mark.slow
def test_an_interrupted_reduction_continues_after_a_kill(tmp_path: Path) -> None:
    state = tmp_path / "state"
    checks = state / "checks.jsonl"
    with reducing(tmp_path, NAN, "--check", "nan", "--state", str(state)) as process:
        while not checks.exists() or len(checks.read_text().splitlines()) < 5:
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    before = checks.read_text().splitlines()
    _, text = reduced(tmp_path, NAN, "--check", "nan", "--state", str(state))
    assert list(state.iterdir()) == [checks]
    after = checks.read_text().splitlines()
    assert after[: len(before) - 1] == before[:-1]
    assert len({json.loads(line)[0] for line in after[1:]}) == len(after) - 1
    assert text == reduced(tmp_path, NAN, "--check", "nan", name="fresh.py")[1]


def test_an_interrupt_keeps_the_smallest_program_so_far(tmp_path: Path) -> None:
    event = interrupted(tmp_path, LOOP, "--check", "nan")
    assert event["failure"]["message"].startswith("NaN in result")


@pytest.mark.slow
def test_a_crash_while_tracing_ends_only_a_child_and_leaves_no_folder(tmp_path: Path) -> None:
    source = SHAPES.replace("import jax\n", "import os\nimport tempfile\nimport jax\n").replace(
        "d = a @ c", "tempfile.mkdtemp()\n    os.kill(os.getpid(), 11)"
    )
    event, text = reduced(tmp_path, source)
    assert (event["failure"]["kind"], event["failure"]["name"]) == ("crash", "SIGSEGV")
    assert function(text, "main") == "os.kill(os.getpid(), 11)"


def test_a_script_decides_about_any_file(tmp_path: Path) -> None:
    script = tmp_path / "check.sh"
    script.write_text('#!/bin/sh\ngrep -q "sorted" "$1" && grep -q "print" "$1"\n')
    script.chmod(0o755)
    source = "import os\nimport sys\n\nx = [3, 1]\ny = sorted(x)\nz = y + x\nprint(os.name, z)\n"
    event, text = reduced(tmp_path, source, "--check", f"command:{script}")
    assert text.splitlines() in (["sorted()", "print()"], ["print(sorted)"])
    assert event["minimal"]


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="where XLA rounds a product at once")
def test_what_differs_without_jit_is_found_among_many_results(tmp_path: Path) -> None:
    source = """\
import jax
import jax.numpy as jnp
import numpy as np


def main(x, y):
    a = jnp.tanh(x)
    return a, jnp.sum(jnp.cos(a) * y), x * x - y, jax.lax.fori_loop(0, 3, lambda i, z: z * a, y)


def inputs():
    x = np.full(8, 0.1, np.float32)
    return x, x * x


if __name__ == "__main__":
    main(*inputs())
"""
    event, text = reduced(tmp_path, source, "--check", "differs:jit,eager")
    assert event["failure"]["message"].startswith("jit and eager differ: result[0]")
    assert event["after"] == 2
    assert " - " in function(text, "main")


@pytest.mark.slow
def test_a_hang_is_a_failure(tmp_path: Path) -> None:
    source = "import time\n\nx = [1, 2]\ny = sum(x)\ntime.sleep(1000)\nprint(x, y)\n"
    event, text = reduced(tmp_path, source, "--check", "hang:2", "--jobs", "4")
    assert event["failure"]["kind"] == "hang"
    assert text.startswith("import time\ntime.sleep(")
    assert event["after"] == 2


@pytest.mark.slow
def test_a_flaky_failure_has_a_confidence(tmp_path: Path) -> None:
    source = f"""\
import os

runs = {str(tmp_path / "runs")!r}
text = sorted("b" + "a")
with open(runs, "a") as file:
    file.write("x")
if os.path.getsize(runs) % 2 == 0:
    raise ValueError(f"flaky {{text}}")
print(text)
"""
    event, text = reduced(tmp_path, source, "--check", "exception", "--jobs", "1")
    assert event["confidence"] == 0.5
    assert event["failure"]["name"] == "ValueError"
    assert event["after"] < event["before"]
    assert "print" not in text


def test_a_program_that_does_not_fail_cannot_be_reduced(tmp_path: Path) -> None:
    with reducing(tmp_path, NAN) as process:
        stdout, _ = process.communicate(timeout=60)
    event = json.loads(stdout.strip().split("\n")[-1])
    assert event == {
        "event": "error",
        "message": "repro.py does not fail",
        "help": "name the failure with --check, such as --check nan",
    }
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("check", "words"), [("nan", "cannot read"), ("nam", "unknown check 'nam'")]
)
def test_invalid_arguments_are_reported(tmp_path: Path, check: str, words: str) -> None:
    with reducing(tmp_path, "def main(:", "--check", check) as process:
        stdout, _ = process.communicate(timeout=60)
    event = json.loads(stdout.strip().split("\n")[-1])
    assert event["event"] == "error"
    assert event["message"].startswith(words)


@pytest.mark.slow
def test_processes_that_a_program_leaves_behind_are_killed(tmp_path: Path) -> None:
    source = SHAPES.replace("import jax\n", "import os\nimport time\nimport jax\n", 1).replace(
        "d = a @ c",
        f"d = os.fork() or (os.setsid(), open({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}} '), time.sleep(600)); d = a @ c",
    )
    reduced(tmp_path, source, "--check", "exception:dot_general")
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert pids
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.slow
def test_results_of_two_environments_differ(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nJAX_ENABLE_X64=1 exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    source = """\
import jax
import jax.numpy as jnp


def main(x):
    return jnp.sin(x.astype(float) * 1e9), x


def inputs():
    return (jnp.float32(0.3),)


if __name__ == "__main__":
    main(*inputs())
"""
    event, text = reduced(tmp_path, source, "--check", f"differs:{python}")
    assert event["failure"]["message"].startswith("results depend on the environment")
    assert "float" in function(text, "main")
    assert event["after"] < event["before"]
