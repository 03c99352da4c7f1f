"""Files that need several devices, in a process that has one: each gets as many as it needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jaxsight.wire.messages.inputs import Argument, ValueSpec
from jaxsight.wire.messages.replies import Failed, Traced
from tests.tracer.isolation.driver import Driver

COUNTS = "import jax\ndef f(x):\n    return x * float(jax.device_count())\n"
MESH = "import jax\nimport numpy as np\nfrom jax.sharding import Mesh\n"
"""The beginning of files that make a mesh."""
SIZES = "def f(x):\n    return x * float(mesh.size) * 3.0 * float(jax.device_count())\n"


@pytest.mark.parametrize(
    ("statement", "size", "count"),
    [
        ("mesh = jax.make_mesh((2, 4), ('x', 'y'))", 8, 8),
        ("shape = 2, 4\nmesh = jax.make_mesh(shape, ('x', 'y'))", 8, 8),
        ("mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ('x', 'y'))", 8, 8),
        ("mesh = Mesh(np.array(jax.devices()).reshape(2, -1, 2), ('x', 'y', 'z'))", 4, 4),
        ("mesh = Mesh(np.array(jax.devices()[:4]), ('x',))", 4, 4),
        ("mesh = Mesh([jax.devices()[0], jax.devices()[5]], ('x',))", 2, 6),
        (
            "import jax.experimental.mesh_utils as utils\n"
            + "mesh = Mesh(utils.create_device_mesh((4, 2)), ('x', 'y'))",
            8,
            8,
        ),
        ("mesh = Mesh([jax.devices()[i] for i in range(4)], ('x',))", 4, 4),
        ("mesh = Mesh([jax.local_devices()[i] for i in range(4)], ('x',))", 4, 4),
        ("mesh = jax.make_mesh((jax.device_count() // 4, 4), ('x', 'y'))", 4, 4),
        (
            "import jax.experimental.mesh_utils as utils\n"
            + "mesh = Mesh(utils.create_device_mesh((jax.device_count() // 4, 4)), ('x', 'y'))",
            4,
            4,
        ),
        ("devices = jax.devices()\nmesh = Mesh(np.array(devices[:4]), ('x',))", 4, 4),
        ("N = 4\nmesh = Mesh(np.array(jax.devices()[:N]), ('x',))", 4, 4),
        ("mesh = Mesh(np.array(jax.devices()[4:6]), ('x',))", 2, 6),
        ("assert jax.device_count() == 4, 'no'\nmesh = Mesh(jax.devices(), ('x',))", 4, 4),
        ("assert 4 <= len(jax.devices())\nmesh = Mesh(jax.devices(), ('x',))", 4, 4),
        ("n = jax.device_count()\nassert n > 1\nmesh = Mesh(jax.devices(), ('x',))", 2, 2),
        (
            "if jax.local_device_count() < 4:\n    raise RuntimeError('run with more devices')\n"
            + "mesh = Mesh(jax.devices(), ('x',))",
            4,
            4,
        ),
        ("mesh = Mesh(jax.devices(), ('x',))", 1, 1),
        ("mesh = jax.sharding.AbstractMesh((4,), ('x',))", 4, 1),
    ],
)
def test_a_module_has_as_many_devices_as_its_mesh(
    tracer: Driver, statement: str, size: int, count: int
) -> None:
    jaxpr = tracer.trace(MESH + statement + "\n" + SIZES, file=f"mesh{size}{count}.py").jaxpr
    assert f"mul a {float(size)}" in jaxpr
    assert f" {float(count)}:f32[]" in jaxpr


def test_a_mesh_that_is_set_for_the_module_has_its_devices(tracer: Driver) -> None:
    source = """
    import jax
    jax.set_mesh(jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,)))
    def f(x):
        return jax.sharding.reshard(x, jax.P("data"))
    """
    answer = tracer.trace(source, file="sets.py")
    assert answer.outputs == "f32[4@data]"
    assert "reshard[dst_sharding=NamedSharding(P('data',), data=4)]" in answer.jaxpr
    assert answer.caveats == ()


def test_a_function_that_makes_a_mesh_has_its_devices(tracer: Driver) -> None:
    source = """
    import jax
    def f(x):
        mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        spec = jax.P("i")
        return jax.shard_map(lambda v: v * 2, mesh=mesh, in_specs=spec, out_specs=spec)(x)
    """
    assert "shard_map" in tracer.trace(source, file="inside.py").jaxpr


SETS_INSIDE = """
import jax
mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))
%s
def f(x):
    with jax.set_mesh(mesh):
        return jax.sharding.reshard(x, jax.P("data"))
"""


def test_a_function_without_jit_may_set_the_mesh(tracer: Driver) -> None:
    answer = tracer.trace(SETS_INSIDE % "", file="inside.py")
    assert answer.outputs == "f32[4@data]"
    plain = "import jax\ndef f(x):\n    return x * float(jax.sharding.get_abstract_mesh().empty)\n"
    assert "mul a 1.0" in tracer.trace(plain, file="plain.py").jaxpr


def test_a_jitted_function_may_not_set_the_mesh(tracer: Driver) -> None:
    answer = tracer.fail(SETS_INSIDE % "@jax.jit", file="jitted.py")
    assert "can only be used outside of `jax.jit`" in answer.failure.message
    calls = (SETS_INSIDE % "@jax.jit").replace("def f(", "def g(") + "def f(x): return g(x)\n"
    answer = tracer.fail(calls, file="calls.py")
    assert "can only be used outside of `jax.jit`" in answer.failure.message


def test_pmap_has_a_device_for_each_row(tracer: Driver) -> None:
    source = """
    import jax
    def f(x):
        return jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(x)
    """
    assert "psum" in tracer.trace(source, file="pmap.py").jaxpr


def test_a_mesh_of_another_module_of_the_project(tracer: Driver) -> None:
    Path(tracer.project, "meshes_of_ours.py").write_text(
        "import jax\nmesh = jax.make_mesh((4,), ('x',))\n"
    )
    source = "import jax\nfrom meshes_of_ours import mesh\n" + SIZES
    for _ in range(2):
        assert "mul a 4.0" in tracer.trace(source, file="imports.py").jaxpr
        assert "1.0" in tracer.trace(COUNTS, file="counts.py").jaxpr


@pytest.mark.parametrize("place", ["module", "function"])
def test_a_file_that_registers_a_class_runs_again_with_more_devices(
    fresh: Driver, place: str
) -> None:
    mesh = "jax.make_mesh((4,), ('x',))"
    source = (
        "import jax\n"
        "class Pair:\n"
        "    pass\n"
        "jax.tree_util.register_pytree_node(Pair, lambda p: ((), None), lambda a, c: Pair())\n"
        "PAIR = Pair()\n"
        + (f"mesh = {mesh}\n" if place == "module" else "")
        + "def f(x):\n"
        + (f"    mesh = {mesh}\n" if place == "function" else "")
        + "    return x * float(mesh.size) * float(1 + len(jax.tree.leaves(PAIR)))\n"
    )
    for _ in range(2):
        answer = fresh.ask(source, file="registers.py")
        assert isinstance(answer, Traced), answer
        assert "mul a 4.0" in answer.jaxpr
        assert isinstance(fresh.ask(COUNTS, file="counts.py"), Traced)


@pytest.mark.parametrize(
    "variable",
    [
        {"XLA_FLAGS": "--xla_force_host_platform_device_count=6"},
        {"JAX_NUM_CPU_DEVICES": "6"},
    ],
)
def test_a_number_in_the_environment_is_the_least(tmp_path: Path, variable: dict[str, str]) -> None:
    driver = Driver(tmp_path, **variable)
    try:
        first = MESH + "mesh = Mesh(jax.devices()[:4], ('x',))\n" + SIZES
        assert " 6.0:f32[]" in driver.trace(first, file="first.py").jaxpr
        larger = MESH + "mesh = jax.make_mesh((8,), ('x',))\n" + SIZES
        assert " 8.0:f32[]" in driver.trace(larger, file="larger.py").jaxpr
        assert " 6.0:f32[]" in driver.trace(COUNTS, file="counts.py").jaxpr
    finally:
        driver.close()


def test_other_files_have_one_device(tracer: Driver) -> None:
    meshed = MESH + "mesh = jax.make_mesh((4,), ('x',))\n" + SIZES
    assert "mul a 4.0" in tracer.trace(meshed, file="meshed.py").jaxpr
    assert "1.0" in tracer.trace(COUNTS, file="counts.py").jaxpr
    assert "mul a 4.0" in tracer.trace(meshed, file="meshed.py").jaxpr
    assert tracer.trace(meshed, file="meshed.py").executed == 0


def test_a_file_without_devices_is_not_executed_again_for_one_with_them(tracer: Driver) -> None:
    plain = "import jax.numpy as jnp\nTABLE = jnp.arange(4.)\ndef f(x):\n    return x * TABLE\n"
    meshed = MESH + "mesh = jax.make_mesh((4,), ('x',))\n" + SIZES
    tracer.trace(meshed, file="meshed.py")
    tracer.trace(plain, file="plain.py")
    assert tracer.trace(meshed, file="meshed.py").executed == 0
    assert tracer.trace(plain, file="plain.py").executed == 0


def test_an_edited_mesh_has_its_own_number(tracer: Driver) -> None:
    for size in (8, 2, 4):
        meshed = MESH + f"mesh = jax.make_mesh(({size},), ('x',))\n" + SIZES
        jaxpr = tracer.trace(meshed, file="meshed.py").jaxpr
        assert f" {float(size)}:f32[]" in jaxpr
        assert jaxpr.count(f" {float(size)}:f32[]") == 2


def test_an_edit_elsewhere_executes_no_mesh_again(tracer: Driver) -> None:
    meshed = MESH + "mesh = jax.make_mesh((4,), ('x',))\n" + SIZES
    tracer.trace(meshed, file="meshed.py")
    assert tracer.trace(meshed.replace("3.0", "5.0"), file="meshed.py").executed == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "import os\nos.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=2'\n"
            + "import jax\nmesh = jax.make_mesh((4,), ('x',))\n",
            "Number of devices 2 must be >= the product of mesh_shape (4,)",
        ),
        (
            "import jax\nmesh = jax.make_mesh((4,), ('x',))\n"
            + "jax.config.update('jax_num_cpu_devices', 2)\n",
            "Number of devices 1 must be >= the product of mesh_shape (4,)",
        ),
        (
            "import jax\nmesh = jax.make_mesh((1000,), ('x',))\n",
            "Number of devices 1 must be >= the product of mesh_shape (1000,)",
        ),
        (
            "import jax\nimport numpy as np\nmesh = np.ones(3).reshape(2, 4)\n",
            "cannot reshape array of size 3 into shape (2,4)",
        ),
        (
            "import jax\nN = jax.device_count()\nmesh = [1, 2][N + 3]\n",
            "list index out of range",
        ),
    ],
)
def test_an_error_that_is_the_programs_own_stays(tracer: Driver, source: str, message: str) -> None:
    answer = tracer.ask(source + SIZES)
    assert isinstance(answer, Failed)
    assert answer.failure.message == message


def test_a_mesh_that_grows_with_the_number_of_devices_fails(tracer: Driver) -> None:
    answer = tracer.ask(MESH + "mesh = jax.make_mesh((2 * jax.device_count(),), ('x',))\n" + SIZES)
    assert isinstance(answer, Failed)
    assert "must be >= the product of mesh_shape" in answer.failure.message
    assert isinstance(tracer.ask(COUNTS, file="counts.py"), Traced)
    assert "1.0" in tracer.trace(COUNTS, file="counts.py").jaxpr


def test_pmap_beside_a_smaller_mesh(tracer: Driver) -> None:
    source = """
    import jax
    mesh = jax.make_mesh((2,), ("i",))
    def f(x):
        return jax.pmap(lambda v: v * float(mesh.size))(x)
    """
    assert "mul" in tracer.trace(source, file="both.py").jaxpr


def test_arguments_and_results_have_the_shardings_of_jit(tracer: Driver) -> None:
    source = """
    import functools
    import jax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    rows = NamedSharding(mesh, P("a"))
    @functools.partial(jax.jit, in_shardings=(rows, None), out_shardings={"sum": rows, "w": None})
    def f(x, w):
        return {"sum": x.sum(1), "w": w}
    """
    answer = tracer.trace(source, file="jitted.py", x=(4, 8), w=(4, 3))
    assert answer.parameters == (("x", "f32[4@a,8]"), ("w", "f32[4,3]"))
    assert answer.outputs == "{'sum': f32[4@a], 'w': f32[4,3]}"
    seen = {value.text: value.sharding for value in answer.seen}
    sharding = seen["f32[4@a,8]"]
    assert sharding is not None
    assert sharding.is_given
    assert sharding.mesh.axes == (("a", 2), ("b", 2))
    assert sharding.spec == (("a",), ())
    assert sharding.local_shape((4, 8)) == (2, 8)
    assert seen["f32[4]"] is None


def test_example_inputs_have_the_devices_of_their_mesh(tracer: Driver) -> None:
    source = """
    import jax
    def f(x):
        return x * 2
    """
    mesh = "jax.make_mesh((4,), ('a',), axis_types=(jax.sharding.AxisType.Auto,))"
    array = f"jax.device_put(jax.numpy.ones(4), jax.sharding.NamedSharding({mesh}, jax.P('a')))"
    request = tracer.request(source, file="expressions.py")
    tracer.send(replace(request, arguments=(Argument("x", ValueSpec(array, literal=False)),)))
    answer = tracer.answer()
    assert isinstance(answer, Traced), answer
    assert answer.parameters == (("x", "f32[4@a]"),)
