"""Calls at the top level of a module, and the example inputs that follow from them."""

from __future__ import annotations

from textwrap import dedent

import pytest

from jaxsight.queries.documents import Document
from jaxsight.settings.example_settings import ExampleSettings
from jaxsight.wire.messages.inputs import ValueSpec

HEAD = """\
import jax
import jax.numpy as jnp
import jaxsight
from tools import show


class Model:
    def __init__(self, n): ...

    def __call__(self, x):
        return jnp.sin(x)

    def loss(self, x, y):
        return jnp.sum(self(x) - y)


def f(x, n=1, *rest, flag=False, **options):
    return jnp.sin(x)


def update(state, batch):
    return jax.tree.map(jnp.sin, state)


def python(x):
    return x + 1


"""


def sets(source: str, settings: ExampleSettings | None = None) -> dict[str, dict[str, str]]:
    """The example inputs by function, and by the name of the set."""
    document = Document("script.py", HEAD + dedent(source))
    assert document.module.syntax_problem is None
    outside = settings or ExampleSettings({}, {}, from_module=True)
    return {
        subject.name: {
            made.name: "; ".join(f"{a.name} = {expression(a.spec)}" for a in made.arguments)
            for made in subject.examples.sets
        }
        for subject in document.subjects(outside)
    }


def expression(spec: object) -> str:
    assert isinstance(spec, ValueSpec)
    return spec.source


@pytest.mark.parametrize(
    ("source", "label", "inputs"),
    [
        ("x = jnp.ones(3)\nf(x)", "f(x)", "x = x"),
        ("x = jnp.ones(3)\ny = 2 * f(x, 2)", "f(x, 2)", "x = x; n = 2"),
        ("f(jnp.ones(3), flag=True)", "f(jnp.ones(3), flag=True)", "x = jnp.ones(3); flag = True"),
        ("f(1.0, a=2)", "f(1.0, a=2)", "x = 1.0; a = 2"),
        ("jax.jit(f)(1.0)", "jax.jit(f)(1.0)", "x = 1.0"),
        ("print(jax.make_jaxpr(f)(1.0))", "jax.make_jaxpr(f)(1.0)", "x = 1.0"),
        ("jax.jit(f).lower(1.0).compile()", "jax.jit(f).lower(1.0)", "x = 1.0"),
        ("jax.jit(jax.grad(f))(1.0)", "jax.jit(jax.grad(f))(1.0)", "x = 1.0"),
        ("jax.eval_shape(f, 1.0)", "jax.eval_shape(f, 1.0)", "x = 1.0"),
        ("step = jax.jit(f)\nstep(1.0)", "step(1.0)", "x = 1.0"),
        ("show(jax.jit(f), 1.0, width=5)", "show(jax.jit(f), 1.0, width=5)", "x = 1.0"),
        ("jaxsight.kernels(jax.jit(f), 1.0)", "jaxsight.kernels(jax.jit(f), 1.0)", "x = 1.0"),
        # What a name is at the call, where that is not what it is at the end.
        ("x = 1.0\nf(x)\nx = 2.0", "f(x)", "x = 1.0"),
        ("x = 1.0\nx, y = x + 1, 2\nf(x)\nx = 3", "f(x)", "x = (1.0 + 1, 2)[0]"),
        ("for x in (1.0, 2.0):\n    y = x + 1\n    f(y)", "f(y)",
         "x = next(iter((1.0, 2.0))) + 1"),
        ("x = 1.0\nfor _ in range(3):\n    x = f(x)", "f(x)", "x = 1.0"),
        ("if __name__ == '__main__':\n    x = 1.0\n    f(x)", "f(x)", "x = 1.0"),
        ("def main(n=4):\n    x = jnp.ones(n)\n    f(x)", "f(x)", "x = jnp.ones(4)"),
    ],
)  # fmt: skip
def test_a_call_gives_example_inputs(source: str, label: str, inputs: str) -> None:
    assert sets(source) == {"f": {f"as in `{label}`": inputs}}


@pytest.mark.parametrize(
    "source",
    [
        "f()",
        "python(1.0)",
        "unknown(1.0)",
        "f(unknown)",
        "jax.vmap(f)(1.0)",
        "jax.lax.map(jax.jit(f), 1.0)",
        "list(map(f, [1.0]))",
        "list(map(jax.jit(f), [1.0]))",
        "g = lambda x: f(x)",
        "y = [g(x) for x in (1.0, 2.0)]",
        "f(*[1.0])",
        "f(y := 1.0)",
        "f(1.0, 2, 3)",
        "update(1.0)",
        "update(1.0, 2.0, 3.0)",
        "f(1.0)  # jaxsight: never",
        "def main():\n    if f:\n        x = 1.0\n    else:\n        x = 2.0\n    f(x)",
        "def main(x):\n    f(x)",
        "def other():\n    f(1.0)",
        "with open('a') as x:\n    f(x)",
        "while True:\n    x = 1.0\nf(x)",
        "state = train(1.0)\nf(state)",
        "state = 1.0\nstate = fit(state)\nf(state)",
        "f(1.0\n",
    ],
)
def test_other_calls_give_none(source: str) -> None:
    document = Document("script.py", HEAD + source)
    assert document.subjects(ExampleSettings({}, {}, from_module=True)) == ()


def test_a_loop_updates_what_was_there_before_it() -> None:
    script = """
    def init(key, n):
        return jax.random.normal(key, (n,))

    state = init(jax.random.key(0), 4)
    for i, batch in enumerate(load()):
        state = update(state, batch)
    print(state)
    """
    assert sets("def load():\n    yield 1.0\n" + dedent(script)) == {
        "init": {
            "as in `init(jax.random.key(0), 4)`": "key = jax.random.key(0); n = 4",
        },
        "update": {
            "as in `update(state, batch)`": "state = init(jax.random.key(0), 4); "
            "batch = next(iter(enumerate(load())))[1]",
        },
    }


def test_objects_of_the_module_have_their_methods() -> None:
    calls = "model = Model(3)\nx = 1.0\nmodel(x)\nmodel.loss(x, y=2.0)\nModel(4)(x)"
    assert sets(calls) == {
        "Model.__call__": {"as in `model(x)`": "self = model; x = x"},
        "Model.loss": {"as in `model.loss(x, y=2.0)`": "self = model; x = x; y = 2.0"},
    }


def test_a_function_has_few_sets_each_once() -> None:
    calls = "\n".join(f"f({n}.0)" for n in (1, 1, 2, 3, 4))
    assert list(sets(calls)["f"]) == ["as in `f(1.0)`", "as in `f(2.0)`", "as in `f(3.0)`"]


def test_a_function_that_is_defined_again_has_its_own_calls() -> None:
    again = "f(1.0)\n\n\ndef f(x, k):\n    return jnp.cos(x)\n\n\nf(2.0, 3)\n"
    document = Document("script.py", HEAD + again)
    subjects = document.subjects(ExampleSettings({}, {}, from_module=True))
    assert [[made.name for made in s.examples.sets] for s in subjects] == [
        ["as in `f(1.0)`"], ["as in `f(2.0, 3)`"],
    ]  # fmt: skip


def test_a_section_comes_first_and_a_setting_switches_calls_off() -> None:
    section = 'def g(x):\n    """Example inputs: x = 5.0"""\n    return jnp.sin(x)\n\n\ng(1.0)\n'
    assert sets(section) == {"g": {"": "x = 5.0"}}
    assert sets("f(1.0)", ExampleSettings({}, {})) == {}


def test_an_edit_changes_the_inputs() -> None:
    outside = ExampleSettings({}, {}, from_module=True)
    document = Document("script.py", HEAD + "f(1.0)\n")
    assert [s.examples.sets[0].name for s in document.subjects(outside)] == ["as in `f(1.0)`"]
    document.change(HEAD + "f(2.0)\n")
    assert [s.examples.sets[0].name for s in document.subjects(outside)] == ["as in `f(2.0)`"]
    document.change(HEAD + "f()\n")
    assert document.subjects(outside) == ()
