"""The target's number of devices is that of the module, whatever the module asks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jaxsight.wire.meshes import Mesh
from jaxsight.wire.messages.replies import Failed, Traced
from tests.tracer.isolation.driver import Driver
from tests.tracer.isolation.test_devices import COUNTS, MESH, SIZES

IMPORTED = "import jax\nfrom ours import mesh\ndef f(x):\n    return x * float(mesh.size)\n"


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


def test_files_of_targets_and_others_do_not_affect_each_other(tracer: Driver) -> None:
    for _ in range(2):
        assert " 8.0:f32[]" in tracer.trace(COUNTS, file="targeted.py", devices=8).jaxpr
        assert " 1.0:f32[]" in tracer.trace(COUNTS, file="counts.py").jaxpr


def test_a_module_of_the_project_sees_the_targets_devices(tracer: Driver) -> None:
    Path(tracer.project, "settings_of_ours.py").write_text("import jax\nN = jax.device_count()\n")
    source = "from settings_of_ours import N\ndef f(x):\n    return x * float(N)\n"
    for devices in (8, 2):
        assert f"mul a {float(devices)}" in tracer.trace(source, devices=devices).jaxpr


def test_a_slice_without_devices_is_not_executed_again_for_another_number(tracer: Driver) -> None:
    plain = "import jax.numpy as jnp\nTABLE = jnp.arange(4.)\ndef f(x):\n    return x * TABLE\n"
    assert tracer.trace(plain, file="plain.py", devices=8).executed == 3
    assert tracer.trace(plain, file="plain.py", devices=4).executed == 0
    assert tracer.trace(plain, file="plain.py").executed == 0


def test_a_number_in_the_environment_gives_way_to_the_targets(tmp_path: Path) -> None:
    driver = Driver(tmp_path, XLA_FLAGS="--xla_force_host_platform_device_count=6")
    try:
        for devices in (4, 8):
            jaxpr = driver.trace(COUNTS, file="counts.py", devices=devices).jaxpr
            assert f" {float(devices)}:f32[]" in jaxpr
        assert " 6.0:f32[]" in driver.trace(COUNTS, file="counts.py").jaxpr
    finally:
        driver.close()


UNKNOWN = "neither it nor the target names their number"


@pytest.mark.parametrize(
    ("statement", "seen"),
    [
        ("mesh = Mesh(jax.devices(), ('x',))", "1 device"),
        ("mesh = jax.make_mesh((len(jax.devices()),), ('x',))", "1 device"),
        ("mesh = Mesh(np.array(jax.local_devices()), ('x',))", "1 device"),
        ("mesh = jax.make_mesh((jax.device_count() // 2, 2), ('x', 'y'))", "2 devices"),
    ],
)
def test_a_mesh_of_an_unknown_number_of_devices_has_a_caveat(
    tracer: Driver, statement: str, seen: str
) -> None:
    source = f"{MESH}{statement}\ndef f(x):\n    return x * float(mesh.size)\n"
    reasons = [each.reason for each in tracer.trace(source, file="unknown.py").caveats]
    assert reasons == [f"sees {seen}: {UNKNOWN}"]
    assert tracer.trace(source, file="unknown.py", devices=4).caveats == ()


def test_a_mesh_that_a_program_makes_for_several_devices_only_has_a_caveat(tracer: Driver) -> None:
    source = """
    import jax
    if jax.device_count() > 1:
        mesh = jax.make_mesh((jax.device_count(),), ("i",))
    else:
        mesh = None
    def f(x):
        return x if mesh is None else jax.device_put(x, jax.NamedSharding(mesh, jax.P("i")))
    """
    (caveat,) = tracer.trace(source, file="chooses.py").caveats
    assert caveat.reason == f"sees 1 device: {UNKNOWN}"
    assert tracer.trace(source, file="chooses.py", devices=4).outputs.startswith("f32[4")


def test_an_error_of_a_program_for_an_unknown_number_of_devices_has_a_note(tracer: Driver) -> None:
    source = "import jax\nROWS = 12 // (jax.device_count() - 1)\ndef f(x):\n    return x * ROWS\n"
    failure = tracer.fail(source, file="rows.py").failure
    assert failure.notes == (f"the program sees 1 device: {UNKNOWN}",)


def test_a_mesh_of_unknown_size_in_a_function_has_a_caveat(tracer: Driver) -> None:
    source = """
    import jax
    def f(x):
        mesh = jax.sharding.Mesh(jax.devices(), ("i",))
        spec = jax.P("i")
        return jax.shard_map(lambda v: v * 2, mesh=mesh, in_specs=spec, out_specs=spec)(x)
    """
    (caveat,) = tracer.trace(source, file="inside.py").caveats
    assert caveat.reason == f"sees 1 device: {UNKNOWN}"


def test_a_mesh_of_unknown_size_of_a_module_of_the_project_has_a_caveat(tracer: Driver) -> None:
    tracer.write("ours.py", "import jax\nmesh = jax.sharding.Mesh(jax.devices(), ('x',))\n")
    (caveat,) = tracer.trace(IMPORTED).caveats
    assert caveat.reason == f"imports `ours.py`, whose line 2 sees 1 device: {UNKNOWN}"


def test_a_caveat_about_a_module_of_a_module_names_its_file(tracer: Driver) -> None:
    tracer.write("deep.py", "import jax\n\nALL = jax.devices()\n")
    ours = "import jax\nfrom deep import ALL\nmesh = jax.sharding.Mesh(ALL, ('x',))\n"
    tracer.write("ours.py", ours)
    (caveat,) = tracer.trace(IMPORTED).caveats
    assert caveat.reason == f"imports `deep.py`, whose line 3 sees 1 device: {UNKNOWN}"


@pytest.mark.parametrize(
    "statement",
    [
        "mesh = jax.make_mesh((4,), ('x',))\nprint(jax.devices())",
        "assert jax.device_count() == 4\nmesh = Mesh(jax.devices(), ('x',))",
        "mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ('x', 'y'))",
        "mesh = Mesh(jax.devices()[:1], ('x',))",
    ],
)
def test_a_number_that_the_program_names_is_known(tracer: Driver, statement: str) -> None:
    source = f"{MESH}{statement}\ndef f(x):\n    return x * float(mesh.size)\n"
    assert tracer.trace(source, file="known.py").caveats == ()


def test_a_program_that_reads_devices_and_has_no_mesh_has_no_caveat(tracer: Driver) -> None:
    source = "import jax\nDEVICE = jax.devices()\nprint(jax.device_count())\n" + COUNTS
    assert tracer.trace(source, file="reads.py").caveats == ()


def test_a_module_of_the_project_does_not_see_the_devices_of_another_file(tracer: Driver) -> None:
    tracer.write("ours.py", "import jax\nN = jax.device_count()\n")
    source = "from ours import N\ndef f(x):\n    return x * float(N)\n"
    meshed = MESH + "mesh = jax.make_mesh((4,), ('x',))\n" + SIZES
    for _ in range(2):
        assert "mul a 4.0" in tracer.trace(meshed, file="meshed.py").jaxpr
        assert "mul a 1.0" in tracer.trace(source, file="plain.py").jaxpr


def test_a_module_of_the_project_without_devices_is_not_executed_again(tracer: Driver) -> None:
    tracer.write("ours.py", "import jax.numpy as jnp\ndef double(x):\n    return x * 2\n")
    source = "from ours import double\ndef f(x):\n    return double(x)\n"
    meshed = MESH + "mesh = jax.make_mesh((4,), ('x',))\n" + SIZES
    tracer.trace(source, file="plain.py")
    tracer.trace(meshed, file="meshed.py")
    tracer.trace(source, file="plain.py")
    tracer.trace(meshed, file="meshed.py")
    assert tracer.trace(source, file="plain.py").executed == 0
    assert tracer.trace(meshed, file="meshed.py").executed == 0


MESH_OF_INPUTS = Mesh((("data", 2), ("model", 4)))


def test_a_module_has_as_many_devices_as_the_mesh_of_its_inputs(tracer: Driver) -> None:
    request = replace(tracer.request(COUNTS, file="counts.py"), mesh=MESH_OF_INPUTS)
    tracer.send(request)
    answer = tracer.answer()
    assert isinstance(answer, Traced), answer
    assert " 8.0:f32[]" in answer.jaxpr
    assert answer.caveats == ()


def test_a_mesh_of_inputs_that_is_larger_than_the_target_fails(tracer: Driver) -> None:
    request = tracer.request(COUNTS, file="counts.py", devices=4)
    tracer.send(replace(request, mesh=MESH_OF_INPUTS))
    answer = tracer.answer()
    assert isinstance(answer, Failed), answer
    assert answer.failure.message == (
        "the mesh data=2, model=4 has 8 devices, and the target has 4"
    )
