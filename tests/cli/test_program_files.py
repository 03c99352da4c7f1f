"""`jaxsight sourcerize` of program files, and functions in other languages, as a person runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from tests.terminal import jaxsight

MODEL = '''\
import jax
import jax.numpy as jnp


@jax.jit
def scaled(x):
    return jnp.sin(x) * 2


def loss(x):
    """
    Example inputs:
        x: f32[3]
    """
    return scaled(x).sum()
'''


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder with a model, and a function in files of each format."""
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "pyproject.toml").write_text(f'[tool.jaxsight]\npython = "{sys.executable}"\n')
    function = jax.jit(lambda x, y: {"sum": jnp.sin(x) + y})
    x = jnp.ones(3)
    lowered = function.lower(x, x)
    (tmp_path / "f.mlir").write_text(lowered.as_text(debug_info=True))
    (tmp_path / "f.jaxexport").write_bytes(export.export(function)(x, x).serialize())
    return tmp_path


def called(source: str, name: str) -> Any:
    """Return what a function of a text returns for two arrays of ones."""
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace[name](np.ones(3, np.float32), np.ones(3, np.float32))


def test_program_file_is_written_as_jax(programs: Path) -> None:
    done = jaxsight("sourcerize", "f.jaxexport", "--json", cwd=programs)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["verified"]
    assert "bits" in shown["ran"]
    result = called(shown["source"], shown["function"])
    np.testing.assert_allclose(result["sum"], np.sin(1.0) + 1, rtol=1e-6)


def test_options_apply_to_program_files(programs: Path) -> None:
    options = ["--style", "pretty", "--shapes", "--output", "out.py"]
    done = jaxsight("sourcerize", "f.mlir", *options, cwd=programs)
    assert (done.returncode, done.stdout) == (0, "")
    assert "# f32[3]" in (programs / "out.py").read_text()


def test_check_says_how_a_program_file_was_proved(programs: Path) -> None:
    done = jaxsight("sourcerize", "f.mlir", "--check", cwd=programs)
    assert done.stdout.startswith("f.mlir: the source lowers to the same StableHLO, 2 equations")


SHARDED = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("rows",), axis_types=(AxisType.Auto,))
on_rows = NamedSharding(mesh, P("rows"))


@jax.jit
def centered(x):
    def local(rows):
        return rows - jax.lax.pmean(rows, "rows")

    x = jax.lax.with_sharding_constraint(jnp.sin(x), on_rows)
    return jax.shard_map(local, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"))(x)


lowered = centered.lower(jnp.ones((8, 4)))
print(lowered.as_text())
"""


@pytest.mark.slow
def test_program_for_several_devices_is_written_with_as_many(tmp_path: Path) -> None:
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "4"}
    program = subprocess.run(
        [sys.executable, "-c", SHARDED], capture_output=True, check=True, env=environment
    ).stdout
    (tmp_path / "centered.mlir").write_bytes(program)
    done = jaxsight("sourcerize", "centered.mlir", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["verified"]
    assert 'jax.make_mesh((4,), ("rows",)' in shown["source"]


def test_program_is_read_from_stdin(programs: Path) -> None:
    text = (programs / "f.mlir").read_text(encoding="utf-8")
    done = jaxsight("sourcerize", "-", "--to", "jaxpr", cwd=programs, input=text)
    assert (done.returncode, "sin a" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("stablehlo", r"%0 = stablehlo.sine %arg0 : tensor<3xf32>  // model.py:7\n"),
        ("hlo", r" sine\(.*\)  // model.py:7\n"),
        ("graph", r'\[label="sin\\nmodel.py:7"\];\n'),
    ],
)
def test_function_is_shown_with_its_lines(programs: Path, language: str, line: str) -> None:
    done = jaxsight("sourcerize", "model.py:loss", "--to", language, cwd=programs)
    assert done.returncode == 0, done.stderr
    assert re.search(line, done.stdout)


def test_a_file_is_read_for_as_long_as_the_user_says(programs: Path) -> None:
    done = jaxsight("sourcerize", "f.mlir", "--timeout", "0.01", cwd=programs)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: the program was not read within 0.01 s; raise --timeout\n"


def test_what_is_no_program_is_reported(programs: Path) -> None:
    (programs / "notes.txt").write_text("buy milk\n")
    done = jaxsight("sourcerize", "notes.txt", "--json", cwd=programs)
    assert done.returncode == 1
    assert json.loads(done.stdout)["reason"] == (
        "cannot read the program: "
        "expected StableHLO, HLO or a serialized Exported, found `buy milk`"
    )
    done = jaxsight("sourcerize", "f.mlir", "--transform", "grad", cwd=programs)
    assert done.returncode == 2
    assert "--transform and --sources require a function" in done.stderr
