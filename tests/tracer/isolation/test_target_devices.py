"""The target's number of devices is that of the module, whatever the module asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.wire.messages.replies import Failed, Traced
from tests.tracer.isolation.driver import Driver
from tests.tracer.isolation.test_devices import COUNTS, MESH, SIZES


@pytest.mark.parametrize("count", ["device_count()", "local_device_count()", "devices().__len__()"])
def test_a_module_sees_the_targets_devices(tracer: Driver, count: str) -> None:
    source = f"import jax\nCOUNT = jax.{count}\ndef f(x):\n    return x * float(COUNT)\n"
    for devices in (8, 3, 1):
        jaxpr = tracer.trace(source, file="counted.py", devices=devices).jaxpr
        assert f"mul a {float(devices)}" in jaxpr


@pytest.mark.parametrize(
    "statement",
    [
        "mesh = Mesh(jax.devices(), ('x',))",
        "mesh = Mesh(np.array(jax.devices()).reshape(-1, 2), ('x', 'y'))",
        "mesh = jax.make_mesh((jax.device_count() // 2, 2), ('x', 'y'))",
        "import jax.experimental.mesh_utils as utils\n"
        + "mesh = Mesh(utils.create_device_mesh((jax.device_count() // 2, 2)), ('x', 'y'))",
    ],
)
def test_a_mesh_of_all_devices_has_the_targets(tracer: Driver, statement: str) -> None:
    answer = tracer.trace(MESH + statement + "\n" + SIZES, file="all.py", devices=8)
    assert "mul a 8.0" in answer.jaxpr
    assert answer.caveats == ()


def test_a_smaller_mesh_leaves_devices(tracer: Driver) -> None:
    source = MESH + "mesh = jax.make_mesh((4,), ('x',))\n" + SIZES
    jaxpr = tracer.trace(source, file="smaller.py", devices=8).jaxpr
    assert "mul a 4.0" in jaxpr
    assert " 8.0:f32[]" in jaxpr


@pytest.mark.parametrize(
    "setting",
    [
        "import os\nos.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=2'\n",
        "import jax\njax.config.update('jax_num_cpu_devices', 2)\n",
    ],
)
def test_a_module_cannot_change_the_targets_number(tracer: Driver, setting: str) -> None:
    for _ in range(2):
        answer = tracer.trace(setting + COUNTS, file="sets.py", devices=4)
        assert " 4.0:f32[]" in answer.jaxpr
        assert answer.caveats == ()
    assert " 2.0:f32[]" in tracer.trace(setting + COUNTS, file="sets.py").jaxpr


@pytest.mark.parametrize(
    "statement",
    [
        "mesh = jax.make_mesh((4, 4), ('x', 'y'))",
        "mesh = Mesh(np.array(jax.devices()).reshape(4, 4), ('x', 'y'))",
        "assert jax.device_count() == 16\nmesh = Mesh(jax.devices(), ('x',))",
    ],
)
def test_a_module_that_needs_more_than_the_target_has_fails(tracer: Driver, statement: str) -> None:
    assertion = statement.replace("\n", "\nmesh = None\n") if "assert" in statement else statement
    source = f"{MESH}def make():\n    " + assertion.replace("\n", "\n    ") + "\n    return mesh\n"
    answer = tracer.fail(source + "mesh = make()\n" + SIZES, file="larger.py", devices=8)
    assert answer.failure.notes == ("the target has 8 devices",)
    assert answer.failure.type in ("ValueError", "AssertionError")


def test_pmap_over_more_rows_than_the_target_has_devices_fails(tracer: Driver) -> None:
    source = "import jax\ndef f(x):\n    return jax.pmap(lambda v: v * 2)(x)\n"
    assert isinstance(tracer.ask(source, file="rows.py", devices=4), Traced)
    answer = tracer.ask(source, file="rows.py", devices=2)
    assert isinstance(answer, Failed)
    assert answer.failure.notes == ("the target has 2 devices",)


def test_files_of_targets_and_others_do_not_affect_each_other(fresh: Driver) -> None:
    for _ in range(2):
        assert " 8.0:f32[]" in fresh.trace(COUNTS, file="targeted.py", devices=8).jaxpr
        assert " 1.0:f32[]" in fresh.trace(COUNTS, file="counts.py").jaxpr


def test_a_module_of_the_project_sees_the_targets_devices(fresh: Driver) -> None:
    Path(fresh.project, "settings_of_ours.py").write_text("import jax\nN = jax.device_count()\n")
    source = "from settings_of_ours import N\ndef f(x):\n    return x * float(N)\n"
    for devices in (8, 2):
        assert f"mul a {float(devices)}" in fresh.trace(source, devices=devices).jaxpr


def test_a_slice_without_devices_is_not_executed_again_for_another_number(fresh: Driver) -> None:
    plain = "import jax.numpy as jnp\nTABLE = jnp.arange(4.)\ndef f(x):\n    return x * TABLE\n"
    assert fresh.trace(plain, file="plain.py", devices=8).executed == 3
    assert fresh.trace(plain, file="plain.py", devices=4).executed == 0
    assert fresh.trace(plain, file="plain.py").executed == 0


def test_a_number_in_the_environment_gives_way_to_the_targets(tmp_path: Path) -> None:
    driver = Driver(tmp_path, XLA_FLAGS="--xla_force_host_platform_device_count=6")
    try:
        for devices in (4, 8):
            jaxpr = driver.trace(COUNTS, file="counts.py", devices=devices).jaxpr
            assert f" {float(devices)}:f32[]" in jaxpr
        assert " 6.0:f32[]" in driver.trace(COUNTS, file="counts.py").jaxpr
    finally:
        driver.close()
