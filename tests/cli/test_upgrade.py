"""`jaxsight upgrade` as a person runs it: between environments that differ, and that do not."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import jax
import pytest

from tests.terminal import jaxsight

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parents[2] / "server"
OLDEST, OLDER = (
    Path(__file__).parents[2] / ".venvs" / name / "bin" / "python"
    for name in ("oldest", "test-py311")
)

MODEL = '''\
import drift
import jax.numpy as jnp


def same(x):
    """
    Example inputs:
        x: f32[64]
    """
    return jnp.cos(x)


def scaled(x):
    """
    Example inputs:
        x: f32[64]
    """
    return drift.scale(x)


def typed(x):
    """
    Example inputs:
        x: f32[64]
    """
    return drift.typed(x)


def fused(x):
    """
    Example inputs:
        x: f32[64]
    """
    return drift.fused(x)


def removed(x):
    """
    Example inputs:
        x: f32[64]
    """
    return drift.removed(x)


def deprecated(x):
    """
    Example inputs:
        x: f32[64]
    """
    return drift.deprecated(x)


def reassociated(x):
    """
    Example inputs:
        x: f32[4096]
    """
    return drift.total(x)


def unsafe(x):
    """
    Example inputs:
        x: f32[64]
    """
    jnp.sin(x)
    return drift.printed(x)
'''

BEFORE = """\
import jax
import jax.numpy as jnp

scale = lambda x: x * 2.0
typed = lambda x: x
fused = lambda x: jnp.sin(x) + 1
removed = lambda x: x
deprecated = lambda x: x
total = lambda x: jnp.sum(x)


def printed(x):
    jax.debug.print("{}", x)
    return x
"""

AFTER = """\
import warnings

import jax
import jax.numpy as jnp

scale = lambda x: x * 2.5
typed = lambda x: x.astype(jnp.bfloat16)
fused = lambda x: jnp.sin(x) + 1 + 0 * jnp.sort(x)
total = lambda x: jnp.sum(x.reshape(64, 64).sum(axis=0))


def deprecated(x):
    warnings.warn("drift.deprecated is deprecated: use drift.new", DeprecationWarning, stacklevel=2)
    return x


def printed(x):
    jax.debug.print("{}", x)
    return x * 3.0
"""


def environment(folder: Path, library: str) -> Path:
    """Return the Python of an environment with the packages of this one, and another library."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    others = sysconfig.get_path("purelib")
    (packages / "others.pth").write_text(
        f"import site; site.addsitedir({others!r})\n", encoding="utf-8"
    )
    (packages / "drift.py").write_text(library, encoding="utf-8")
    return folder / "bin" / "python"


def upgrade(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return jaxsight("upgrade", *map(str, arguments), cwd=cwd, COLUMNS="160")


def by_function(shown: dict[str, Any]) -> dict[str, list[tuple[str, bool]]]:
    """Return what differs in each function, and whether it is worse."""
    return {
        each["function"]: [(found["aspect"], found["worse"]) for found in each["differences"]]
        for each in shown["functions"]
    }


def words(shown: dict[str, Any], function: str) -> list[str]:
    (found,) = (each for each in shown["functions"] if each["function"] == function)
    return [each["words"] for each in found["differences"]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[tool.jaxsight]\ntarget = "cpu"\n', encoding="utf-8")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    return folder


def test_what_another_environment_changes(project: Path, tmp_path: Path) -> None:
    old, new = environment(tmp_path / "a", BEFORE), environment(tmp_path / "b", AFTER)
    chosen = ("model.py", "--from", old, "--python", new, "--inputs", "written")
    done = upgrade(*chosen, "--json", cwd=project)
    assert done.returncode == 1, done.stderr
    shown = json.loads(done.stdout)
    found = by_function(shown)
    assert found["same"] == []
    assert "numbers" not in dict(found["reassociated"])
    assert found["scaled"] == [("numbers", True), ("numbers", True)]
    assert words(shown, "scaled")[0].startswith("result 0 differs: ")
    assert words(shown, "scaled")[1].startswith("the gradient of x differs: 2.5 instead of 2")
    assert ("types", True) in found["typed"]
    assert words(shown, "typed")[0] == "returns bf16[64] instead of f32[64]"
    assert ("kernels", True) in found["fused"]
    assert [aspect for aspect, _ in found["removed"]] == ["error"]
    assert "removed" in words(shown, "removed")[0]
    assert found["deprecated"] == [("deprecation", False)]
    assert "drift.deprecated is deprecated: use drift.new" in words(shown, "deprecated")[0]
    (unsafe,) = (each for each in shown["functions"] if each["function"] == "unsafe")
    assert unsafe["not_compared"] == "it has effects, so it is not run"
    worse = {each["function"] for each in shown["functions"] if each["worse"]}
    assert {"scaled", "typed", "fused", "removed"} <= worse
    assert not worse & {"same", "deprecated"}
    assert shown["worse"] == len(worse)

    text = upgrade(*chosen, cwd=project).stdout
    rows = {line.split()[0]: line.split()[1] for line in text.splitlines() if line[:6] == "model."}
    assert rows["model.py:scaled"] == rows["model.py:typed"] == "differs"
    assert rows["model.py:removed"] == "fails"
    assert "model.py:same" not in text
    assert f"JAX {jax.__version__} → {jax.__version__} on cpu: 8 functions, " in text


def test_the_same_environment_twice_differs_in_nothing(project: Path, tmp_path: Path) -> None:
    same = environment(tmp_path / "a", BEFORE)
    done = upgrade("--from", same, "--python", same, "--inputs", "written", cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith("8 functions, 0 differ, 0 for the worse")


def test_one_of_python_and_jax_is_given(project: Path) -> None:
    for arguments in ((), ("--python", sys.executable, "--jax", "0.12.0")):
        done = upgrade(*arguments, cwd=project)
        assert (done.returncode, done.stdout) == (2, "")
        assert "give one of --python and --jax" in done.stderr


def test_without_functions_nothing_is_compared(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("X = 1\n", encoding="utf-8")
    assert upgrade("empty.py", "--python", sys.executable, cwd=tmp_path).returncode == 3


LEFT_OUT = '''\
import jax
import jax.numpy as jnp


@jax.custom_vjp
def with_slow_gradient(x):
    """
    Example inputs:
        x: f32[64]
    """
    return 2 * x


def backward(_, g):
    count, _ = jax.lax.while_loop(lambda c: c[1] < 2_000_000_000, lambda c: (c[0] + g, c[1] + 1), (g, 0))
    return (count,)


with_slow_gradient.defvjp(lambda x: (2 * x, None), backward)


def same(x):
    """
    Example inputs:
        x: f32[64]
    """
    return jnp.cos(x)


def mistaken(x):
    """
    Example inputs:
        x: f32[64]
    """
    return x @ jnp.ones((3, 3))
'''


def test_a_function_that_runs_too_long_is_named_and_the_others_are_compared(tmp_path: Path) -> None:
    limits = "[tool.jaxsight.timeouts]\ntrace = 8\n"
    (tmp_path / "pyproject.toml").write_text(limits, encoding="utf-8")
    (tmp_path / "model.py").write_text(LEFT_OUT, encoding="utf-8")
    chosen = ("--from", sys.executable, "--python", sys.executable, "--inputs", "written")
    done = upgrade("model.py", *chosen, "--target", "cpu", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary, *left_out = done.stdout.splitlines()
    assert summary.endswith("3 functions, 0 differ, 0 for the worse")
    assert left_out == [
        "1 function cannot be traced or compiled under either version",
        "numbers of 1 function not compared: the gradient: running the function took longer than 8 s",
        "list them with --verbose",
    ]


RELEASES = '''\
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P


def cumulative(x):
    """More kernels in the scans of an associative operation.

    Example inputs:
        x: f32[64, 1024]
    """
    return jnp.cumsum(x, axis=1), lax.associative_scan(jnp.multiply, x, axis=1)


def activations(x):
    """Fusions that changed, as those of an attention layer in jax#33338.

    Example inputs:
        x: f32[4096]
    """
    return jax.nn.gelu(x), jax.nn.softplus(x), lax.erf_inv(jnp.tanh(x)), lax.lgamma(x)


def clipped(x):
    """
    Example inputs:
        x: f32[8]
    """
    return jnp.clip(x, a_min=0.0, a_max=1.0)


def resharded(x, w):
    """Weights that `shard_map` divides in another way than they are, as in marin#4455.

    Example inputs:
        mesh: data=2, expert=2 explicit
        x: f32[8@expert, 16]
        w: f32[8@expert, 16@data, 32]
    """
    specs = P("expert"), P("expert")
    return jax.shard_map(
        lambda x, w: jnp.einsum("ed,edf->ef", x, w), in_specs=specs, out_specs=P("expert")
    )(x, w)
'''


@pytest.mark.skipif(not OLDEST.exists(), reason="there is no environment with the oldest JAX")
@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="the differences are those of JAX 0.12")
def test_released_versions_of_jax_differ(tmp_path: Path) -> None:
    (tmp_path / "releases.py").write_text(RELEASES, encoding="utf-8")
    chosen = ("--from", OLDEST, "--python", sys.executable, "--target", "cpu", "--json")
    shown = json.loads(upgrade("releases.py", *chosen, cwd=tmp_path).stdout)
    found = by_function(shown)
    assert ("kernels", True) in found["cumulative"]
    assert ("temp", True) in found["activations"]
    assert found["clipped"] == [("error", True)]
    assert words(shown, "clipped")[0].startswith("`jax.numpy.clip(a_min=…)` does not exist")
    assert found["resharded"] == [("error", True)]
    assert words(shown, "resharded")[0].startswith("`shard_map` needs an input divided as ")


IN_PLACE = '''\
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax


@partial(jax.jit, donate_argnums=0)
def update(x):
    """A loop that reads a value between two updates, as in xla#45912.

    Example inputs:
        x: f32[1048576]
    """
    y = jnp.exp(x)
    total = lax.fori_loop(0, 8, lambda i, total: total + y[i * 131072], 0.0)
    return y * total
'''


@pytest.mark.skipif(not OLDER.exists(), reason="there is no environment with an older JAX")
@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="JAX 0.12 updates in place again")
def test_a_donated_buffer_that_is_no_longer_updated_in_place(tmp_path: Path) -> None:
    (tmp_path / "in_place.py").write_text(IN_PLACE, encoding="utf-8")
    chosen = ("in_place.py", "--target", "cpu", "--json")
    worse = upgrade(*chosen, "--from", sys.executable, "--python", OLDER, cwd=tmp_path)
    assert worse.returncode == 1, worse.stderr
    shown = json.loads(worse.stdout)
    assert by_function(shown) == {"update": [("temp", True)]}
    assert words(shown, "update")[0].startswith("temp 196 B → 4 MiB")
