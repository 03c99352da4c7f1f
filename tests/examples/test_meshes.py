"""The mesh of example inputs: where it is declared, what it applies to, and who else is `mesh`."""

from __future__ import annotations

import pytest

from jaxsight.examples import choice
from jaxsight.examples.sets import Examples, ExampleSet
from jaxsight.wire.meshes import Mesh
from jaxsight.wire.messages.inputs import (
    Argument,
    ArraySpec,
    InputSpec,
    MeshSpec,
    TreeSpec,
    ValueSpec,
)
from tests.examples.fixtures import function

DATA = Mesh((("data", 2),))
X = Argument("x", ArraySpec("float32", (8,), spec=(("data",),)))


def read(
    source: str, name: str | None = None, mesh: Mesh | None = None, project: str | None = None
) -> Examples:
    return choice.of(function(source, name), sizes={"N": 2}, mesh=mesh, project=project)


def only(source: str, name: str | None = None, mesh: Mesh | None = None) -> ExampleSet:
    found = read(source, name, mesh)
    assert found.problems == ()
    (chosen,) = found.sets
    return chosen


def with_mesh(line: str, parameters: str = "x") -> str:
    return f'def f({parameters}):\n    """\n    Example inputs:\n        {line}\n        x: f32[8@data]\n    """\n'


@pytest.mark.parametrize(
    "docstring",
    [
        "Example inputs:\n        mesh: data=2\n        x: f32[8@data]",
        "Example inputs\n    --------------\n    mesh : data=2\n    x : f32[8@data]",
        ":param x: it\n    :Example inputs:\n        mesh: data=2\n        x: f32[8@data]",
        "Example inputs::\n\n        mesh: data=N\n        x: f32[8@data]\n        where N=2",
        ".. rubric:: Example inputs\n\n        mesh: data=2\n        x: f32[8@data]",
    ],
)
def test_a_section_of_any_style_declares_a_mesh(docstring: str) -> None:
    chosen = only(f'def f(x):\n    """\n    {docstring}\n    """\n')
    assert (chosen.mesh, chosen.arguments) == (DATA, (X,))


def test_a_section_of_one_line_is_a_mesh_alone() -> None:
    assert only('def f():\n    """\n    Example inputs: mesh: data=2\n    """\n').mesh == DATA


def test_sizes_of_axes_may_be_names_of_the_settings() -> None:
    assert only(with_mesh("mesh: data=N")).mesh == DATA


def test_a_module_has_the_mesh_that_an_expression_names() -> None:
    chosen = only(with_mesh("mesh = make_mesh(MESH, N)"))
    assert (chosen.mesh, chosen.mesh_source) == (None, "make_mesh(MESH, N)")
    assert chosen.arguments == (X,)
    assert chosen.expressions == ("MESH", "make_mesh")
    assert chosen.sizes == (("N", 2),)
    assert not chosen.needs_mesh


def test_without_a_line_the_module_itself_has_the_mesh() -> None:
    chosen = only(with_mesh("# no mesh"))
    assert (chosen.mesh, chosen.mesh_source, chosen.needs_mesh) == (None, "", True)


def test_the_mesh_of_the_settings_applies_where_an_array_names_an_axis() -> None:
    assert only(with_mesh("# no mesh"), mesh=DATA).mesh == DATA
    plain = 'def f(x):\n    """\n    Example inputs: x: f32[8]\n    """\n'
    assert only(plain, mesh=DATA).mesh is None
    assert not only(plain).needs_mesh
    assert only(with_mesh("mesh: data=4"), mesh=DATA).mesh == Mesh((("data", 4),))
    assert only(with_mesh("# no mesh"), mesh=Mesh((("rows", 2),))).needs_mesh


def test_other_sets_inherit_the_mesh_and_may_have_their_own() -> None:
    source = '''
    def f(x):
        """
        Example inputs:
            mesh: data=2
            x: f32[8@data]
        Example inputs (long):
            x: f32[64@data]
        Example inputs (wide):
            mesh: data=4 explicit
        """
    '''
    meshes = [(chosen.name, chosen.mesh) for chosen in read(source).sets]
    assert meshes == [("", DATA), ("long", DATA), ("wide", Mesh((("data", 4),), ("explicit",)))]


def test_methods_inherit_the_mesh_of_the_class() -> None:
    source = '''
    class Model:
        """A model.

        Example inputs:
            self = Model()
            mesh: data=2
            x: f32[8@data]
        """

        def __call__(self, x): ...

        def loss(self, x, y):
            """
            Example inputs:
                y: f32[4@data]
            """
    '''
    assert only(source, "Model.__call__").mesh == DATA
    assert only(source, "Model.loss").mesh == DATA


def test_a_project_example_has_the_same_notation() -> None:
    found = read("def f(x): ...", project="mesh: data=2\nx: f32[8@data]")
    assert (found.sets[0].mesh, found.sets[0].arguments) == (DATA, (X,))
    (wrong,) = read("def f(x): ...", project="mesh: data=2\nx: f32[3@data]").problems
    assert (wrong.code, wrong.range.start.line) == ("JX909", 1)


@pytest.mark.parametrize(
    ("line", "spec", "mesh", "source"),
    [
        ("mesh: data=2", MeshSpec(), DATA, ""),
        ("mesh = MESH", ValueSpec("MESH", literal=False), None, "MESH"),
        ("mesh: 'cube'", ValueSpec("'cube'", literal=True), None, ""),
        ("mesh: f32[9, 3]", ArraySpec("float32", (9, 3)), None, ""),
        ("mesh: (f32[], 3)", None, None, ""),
    ],
)
def test_a_parameter_called_mesh_has_any_example(
    line: str, spec: InputSpec | None, mesh: Mesh | None, source: str
) -> None:
    chosen = only(with_mesh(line, "x, mesh"))
    assert (chosen.mesh, chosen.mesh_source) == (mesh, source)
    arguments = {argument.name: argument.spec for argument in chosen.arguments}
    wanted = spec or TreeSpec("tuple", (ArraySpec("float32", ()), ValueSpec("3", literal=True)))
    assert arguments == {"x": X.spec, "mesh": wanted}


def test_a_static_parameter_may_be_a_mesh() -> None:
    decorated = '@partial(jax.jit, static_argnames="mesh")\n' + with_mesh("mesh: data=2", "x, mesh")
    assert Argument("mesh", MeshSpec()) in only(decorated).arguments


def test_keyword_arguments_collect_a_mesh_only_if_it_is_an_example() -> None:
    assert only(with_mesh("mesh: data=2", "x, **options")).arguments == (X,)
    given = only(with_mesh("mesh = MESH", "x, **options"))
    assert given.arguments == (X, Argument("mesh", ValueSpec("MESH", literal=False)))


def test_annotations_name_no_mesh_axes() -> None:
    source = 'def f(x: Float[Array, "4 N"]): ...'
    chosen = only(source, mesh=DATA)
    assert chosen.arguments == (Argument("x", ArraySpec("float32", (4, 2))),)
    assert chosen.mesh is None


def test_a_mesh_that_is_missing_is_asked_for_as_one() -> None:
    source = 'def f(x, mesh):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n'
    (problem,) = read(source).problems
    assert (problem.message, problem.help) == ("no example for `mesh`", "add `mesh: data=2`")
