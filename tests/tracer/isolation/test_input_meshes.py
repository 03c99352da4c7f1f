"""Example inputs on a mesh: traced as in a program that has set it, and then forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jaxsight.wire.meshes import Mesh, Spec
from jaxsight.wire.messages.inputs import (
    Argument,
    ArraySpec,
    InputSpec,
    KeySpec,
    MeshSpec,
    TreeSpec,
    ValueSpec,
)
from jaxsight.wire.messages.replies import Failed, Traced
from tests.tracer.isolation.driver import Driver

DATA: Spec = (("data",), ())
X = ArraySpec("float32", (8, 4), spec=DATA)
AUTO = Mesh((("data", 4),))
EXPLICIT = Mesh((("data", 4),), ("explicit",))
PLAIN = "def f(x):\n    return x * 2.0\n"
COUNTS = "import jax\ndef f(x):\n    return x * float(jax.device_count())\n"
OWN = "MESH = jax.make_mesh({}, {}, axis_types=(jax.sharding.AxisType.Explicit,) * {})\n"


def ask(
    tracer: Driver,
    text: str,
    mesh: Mesh | None = None,
    /,
    source: str = "",
    names: tuple[str, ...] = (),
    keeps: bool = True,
    default: bool = False,
    **arguments: InputSpec,
) -> Traced | Failed:
    """The answer for a function of a file; with `keeps`, all of its statements run."""
    request = replace(
        tracer.request(text, whole=keeps),
        arguments=tuple(Argument(name, spec) for name, spec in (arguments or {"x": X}).items()),
        mesh=mesh,
        mesh_is_default=default,
        mesh_source=source,
        mesh_names=names,
    )
    tracer.send(request)
    answer = tracer.answer()
    assert isinstance(answer, Traced | Failed), answer
    return answer


def trace(tracer: Driver, text: str, mesh: Mesh | None = None, /, **how: object) -> Traced:
    answer = ask(tracer, text, mesh, **how)  # type: ignore[arg-type]
    assert isinstance(answer, Traced), answer
    return answer


def fail(tracer: Driver, text: str, mesh: Mesh | None = None, /, **how: object) -> list[str]:
    """The type, the argument, the message and the help of a failure of example inputs."""
    answer = ask(tracer, text, mesh, **how)  # type: ignore[arg-type]
    assert isinstance(answer, Failed), answer
    problem = answer.failure
    assert problem.stage == "inputs", problem
    return [problem.type, problem.argument, problem.message, *problem.notes]


def test_arrays_are_divided_over_explicit_axes(tracer: Driver) -> None:
    answer = trace(tracer, PLAIN, EXPLICIT)
    assert answer.outputs == "f32[8@data,4]"
    assert dict(answer.parameters) == {"x": "f32[8@data,4]"}


def test_automatic_axes_are_not_in_types(tracer: Driver) -> None:
    assert trace(tracer, PLAIN, AUTO).outputs == "f32[8,4]"


def test_axes_have_types_of_their_own(tracer: Driver) -> None:
    mesh = Mesh((("data", 2), ("model", 2), ("rows", 2)), ("explicit", "auto", "explicit"))
    spec = ArraySpec("float32", (8, 4, 2), spec=(("data", "rows"), ("model",), ()))
    assert trace(tracer, PLAIN, mesh, x=spec).outputs == "f32[8@(data,rows),4,2]"


def test_keys_and_leaves_of_pytrees_are_divided(tracer: Driver) -> None:
    key = KeySpec("fry", (8,), (("data",),))
    answer = trace(tracer, "def f(x):\n    return x\n", EXPLICIT, x=TreeSpec("tuple", (key, X)))
    assert answer.outputs == "(key<fry>[8@data], f32[8@data,4])"


def test_a_shard_map_uses_the_mesh(tracer: Driver) -> None:
    source = """
    import jax
    def f(x):
        P = jax.sharding.PartitionSpec
        total = lambda v: jax.lax.psum(v, "data")
        return jax.shard_map(total, in_specs=P("data"), out_specs=P())(x)
    """
    for mesh in (AUTO, EXPLICIT):
        answer = trace(tracer, source, mesh)
        assert "psum" in answer.jaxpr
        assert answer.outputs == "f32[2,4]"


def test_an_expression_is_evaluated_under_the_mesh(tracer: Driver) -> None:
    source = """
    import jax
    import jax.numpy as jnp
    def rows():
        return jax.sharding.reshard(jnp.ones((8, 4)), jax.sharding.PartitionSpec("data"))
    def f(x, w):
        return x + w
    """
    how = {"x": X, "w": ValueSpec("rows()", literal=False)}
    assert trace(tracer, source, EXPLICIT, **how).outputs == "f32[8@data,4]"
    smaller = Mesh((("data", 2),), ("explicit",))
    assert trace(tracer, source, smaller, **how).outputs == "f32[8@data,4]"


def test_a_jitted_function_with_shardings_of_its_own_places_its_arguments(tracer: Driver) -> None:
    source = """
    import functools, jax
    from jax.sharding import NamedSharding, PartitionSpec as P
    MESH = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    @functools.partial(jax.jit, in_shardings=(NamedSharding(MESH, P("data")),) * 2)
    def f(x, y):
        return x + y
    """
    answer = trace(tracer, source, AUTO, x=X, y=ArraySpec("float32", (8, 4)))
    assert answer.outputs == "f32[8,4]"


def test_a_mesh_of_the_module_is_named_by_an_expression(tracer: Driver) -> None:
    source = "import jax\n" + OWN.format((2, 4), ("data", "model"), 2) + PLAIN
    assert trace(tracer, source, source="MESH").outputs == "f32[8@data,4]"
    made = "import jax\ndef make():\n    return jax.make_mesh((4,), ('data',))\n" + PLAIN
    assert trace(tracer, made, source="make()").outputs.startswith("f32[8")
    wrong = fail(tracer, "MESH = 3\n" + PLAIN, source="MESH")
    assert wrong == ["jaxsight.NotAMesh", "mesh", "not a `Mesh` but of type `int`"]


def test_an_abstract_mesh_of_the_module_is_one(tracer: Driver) -> None:
    source = """
    import jax
    kinds = (jax.sharding.AxisType.Explicit,)
    MESH = jax.sharding.AbstractMesh((4,), ("data",), axis_types=kinds)
    def f(x):
        return x * 2.0
    """
    assert trace(tracer, source, source="MESH").outputs == "f32[8@data,4]"


def test_the_only_mesh_of_the_module_with_these_axes_is_used(tracer: Driver) -> None:
    source = (
        "import jax\n"
        + OWN.format((4,), ("data",), 1)
        + OWN.format((2,), ("rows",), 1).replace("MESH", "OTHER")
        + "SAME = MESH\n"
        + PLAIN
    )
    names = ("MESH", "OTHER", "SAME", "absent")
    assert trace(tracer, source, names=names).outputs == "f32[8@data,4]"
    twice = source + OWN.format((2, 2), ("data", "z"), 2).replace("MESH", "THIRD")
    assert fail(tracer, twice, names=(*names, "THIRD")) == [
        "jaxsight.UnknownAxis",
        "x@data",
        "several meshes of the module have the axis `data`: `MESH`, `SAME`, `THIRD`",
        "choose one: `mesh = MESH`",
    ]
    assert fail(tracer, PLAIN) == [
        "jaxsight.UnknownAxis",
        "x@data",
        "unknown mesh axis `data`",
        "add `mesh: data=2`",
    ]


def test_the_mesh_that_the_module_sets_is_used(tracer: Driver) -> None:
    source = "import jax\n" + OWN.format((4,), ("data",), 1) + "jax.set_mesh(MESH)\n" + PLAIN
    assert trace(tracer, source, keeps=False).outputs == "f32[8@data,4]"
    assert trace(tracer, source, AUTO, keeps=False).outputs == "f32[8@data,4]"
    other = Mesh((("data", 2),))
    assert trace(tracer, source, other, keeps=False, default=True).outputs == "f32[8@data,4]"
    assert fail(tracer, source, other, keeps=False) == [
        "jaxsight.UnevenAxis",
        "mesh",
        "the module sets another mesh: `data=4`",
        "remove the line, or give the mesh these axes",
    ]
    rows = ArraySpec("float32", (8,), spec=(("rows",),))
    assert fail(tracer, source, keeps=False, x=rows) == [
        "jaxsight.UnknownAxis",
        "x@rows",
        "unknown mesh axis `rows`",
        "use an axis of the mesh: `data`",
    ]


def test_an_axis_of_the_modules_mesh_divides_its_dimension(tracer: Driver) -> None:
    source = "import jax\n" + OWN.format((4,), ("data",), 1) + PLAIN
    assert fail(tracer, source, source="MESH", x=ArraySpec("float32", (6,), spec=(("data",),))) == [
        "jaxsight.UnevenAxis",
        "x@data",
        "size 6 is not divisible by mesh axis `data` of size 4",
        "use a multiple of 4",
    ]


def test_the_mesh_may_be_an_argument(tracer: Driver) -> None:
    source = """
    import jax
    def f(x, mesh):
        rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
        return jax.lax.with_sharding_constraint(x, rows) * float(mesh.size)
    """
    assert "4.0:f32[]" in trace(tracer, source, AUTO, x=X, mesh=MeshSpec()).jaxpr


def test_a_mesh_that_is_no_mesh_may_be_an_argument_called_so(tracer: Driver) -> None:
    source = "def f(x, mesh):\n    return x * float(mesh)\n"
    plain = ArraySpec("float32", (8, 4))
    value = ValueSpec("1 + 2", literal=False)
    assert "3.0:f32[]" in trace(tracer, source, source="1 + 2", x=plain, mesh=value).jaxpr


@pytest.mark.parametrize("size", [513, 2**40])
def test_a_mesh_of_too_many_devices_is_refused(tracer: Driver, size: int) -> None:
    wrong = fail(tracer, PLAIN, Mesh((("data", size),)))
    assert wrong[1:3] == ["mesh", "meshes of more than 512 devices are not simulated"]


def test_a_file_that_sets_the_number_of_devices_keeps_it(tracer: Driver) -> None:
    source = "import jax\njax.config.update('jax_num_cpu_devices', 2)\n" + PLAIN
    wrong = fail(tracer, source, AUTO, keeps=False)
    assert wrong[1:] == ["mesh", "the mesh has 4 devices, but there are 2"]
    assert trace(tracer, source, Mesh((("data", 2),)), keeps=False).outputs == "f32[8,4]"


def test_nothing_of_a_mesh_is_left_for_other_requests(tracer: Driver) -> None:
    context = (
        "import jax\ndef f(x):\n    return x * float(jax.sharding.get_abstract_mesh().empty)\n"
    )
    shape = ArraySpec("float32", (8, 4))
    for mesh in (EXPLICIT, AUTO):
        assert "0.0:f32[]" in trace(tracer, context, mesh).jaxpr
        assert "1.0:f32[]" in trace(tracer, context, x=shape).jaxpr
    assert " 4.0:f32[]" in trace(tracer, COUNTS, EXPLICIT).jaxpr
    assert " 1.0:f32[]" in trace(tracer, COUNTS, x=shape).jaxpr


def test_a_function_that_fails_under_a_mesh_leaves_nothing(tracer: Driver) -> None:
    answer = ask(tracer, "def f(x):\n    raise ValueError('no')\n", EXPLICIT)
    assert isinstance(answer, Failed)
    assert tracer.trace(PLAIN, x=(8,)).outputs == "f32[8]"
