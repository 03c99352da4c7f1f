"""Each of the hard programs passes the gate with 64-bit types on, and one in two with them off on
JAX before 0.12.

`--every-setting` runs each off and on, on each JAX. They run in processes of their own, because
some need eight devices, which is settled before JAX starts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[2]
MODULES = (
    "arrays", "calls", "devices", "effects", "kernels", "linear_algebra", "loops", "meshes",
    "primitives", "randomness", "rare", "signatures", "transforms", "values",
)  # fmt: skip


def failures(*options: str) -> dict[str, str]:
    command = [sys.executable, "-m", "tests.jaxsight_source.programs", "--json", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["count"]
    return dict(told["failed"])


def test_every_module_of_programs_is_run():
    beside = {
        path.stem for path in (ROOT / "tests/corpora/jaxsight_source/programs").glob("[a-z]*.py")
    }
    assert beside - {"registry", "third_party"} == set(MODULES)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "x64" in metafunc.fixturenames:
        usual = ("on", 1) if jax.__version_info__ >= (0, 12) else ("off", 2)
        every = metafunc.config.getoption("--every-setting")
        metafunc.parametrize(("x64", "one_in"), [("off", 1), ("on", 1)] if every else [usual])


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_hard_programs(module, x64, one_in):
    failed = failures("--module", module, "--x64", x64, "--one-in", str(one_in))
    assert not failed


@pytest.mark.search
def test_some_of_each_module():
    named = (
        "updates_of_all_sorts", "custom_vjp_in_its_gradient", "callbacks",
        "a_primitive_of_ones_own", "custom_linear_solve_of", "complex_numbers",
        "remat_with_its_defaults", "gradient_of_a_shard_map", "fori_with_traced_bounds",
        "mantissas_and_exponents", "typed_keys_in", "named_tuples_in", "gradient_of_norm",
        "pipeline_of_stages",
    )  # fmt: skip
    assert not failures("--x64", "off", *named)
