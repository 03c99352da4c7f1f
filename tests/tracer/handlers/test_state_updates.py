"""What functions update in place: outputs that have names, and a module that is afterwards as it
was before.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxsight.tracer.failures import UserError
from jaxsight.wire.messages.inputs import Argument, TreeSpec, ValueSpec
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.messages.requests import Compare, Sourcerize, TransformedSource
from tests.tracer.handlers.lab import Lab, lab

HEAD = "import collections, dataclasses, functools, jax, jax.numpy as jnp, numpy as np\n"


def outputs(traced: Traced) -> str:
    """The results of the jaxpr, `(b, c)`."""
    return traced.jaxpr.rpartition(" in ")[2].removesuffix(" }")


CONTAINERS = [
    ("S = {'a': jnp.zeros(3)}", "S['a'] = S['a'] + x", "S"),
    ("S = [jnp.zeros(3), 1]", "S[0] = S[0] + x", "S"),
    ("S = []", "S.append(x)", "S"),
    ("S = collections.deque([1], 4)", "S.append(x)", "S"),
    ("S = collections.OrderedDict(a=jnp.zeros(3))", "S['b'] = x", "S"),
    ("S = {'a': {'b': (jnp.zeros(3),)}}", "S['a']['b'] = (x,)", "S"),
    ("class S: a = jnp.zeros(3)", "S.a = S.a + x", "S.a"),
    ("class C: pass\nS = C()", "S.a = x", "S.a"),
    ("class C: pass\nS = C()\nS.b = C()", "S.b.c = x", "S.b"),
    ("class C: __slots__ = ('a',)\nS = C()", "S.a = x", "S.a"),
    ("class C(dict): pass\nS = C()", "S['a'] = x", "S"),
    ("@dataclasses.dataclass\nclass C:\n    a: object\nS = C(jnp.zeros(3))", "S.a += x", "S.a"),
]


@pytest.mark.parametrize(("made", "update", "name"), CONTAINERS)
def test_updates_are_outputs_and_taken_back(made: str, update: str, name: str) -> None:
    file = lab(HEAD + f"{made}\ndef f(x):\n    {update}\n    return x.sum()\n")
    before = repr(file.namespace["S"]), repr(getattr(file.namespace["S"], "__dict__", None))
    traced = file.trace("f", x="f32[3]")
    assert traced.updates == (name,)
    assert traced.left_out == ()
    assert traced.outputs == "f32[]"
    assert outputs(traced).count(",") == 1, traced.jaxpr
    after = repr(file.namespace["S"]), repr(getattr(file.namespace["S"], "__dict__", None))
    assert after == before
    assert file.trace("f", x="f32[3]").jaxpr == traced.jaxpr


def test_arguments_globals_variables_and_defaults_have_names() -> None:
    file = lab(
        HEAD
        + "COUNT = jnp.zeros(())\n"
        + "def helper(x):\n    global COUNT\n    COUNT = COUNT + x.sum()\n"
        + "def made():\n"
        + "    inner = jnp.ones(3)\n"
        + "    def step(model, x, seen=[]):\n"
        + "        nonlocal inner\n"
        + "        inner = inner * 2\n        model['w'] = x\n        seen.append(x)\n"
        + "        helper(x)\n        return x\n"
        + "    return step\n"
        + "f = made()\n"
    )
    traced = file.trace("f", model="= {'w': jnp.zeros(3)}", x="f32[3]")
    assert sorted(traced.updates) == ["COUNT", "inner", "model", "seen"]
    assert traced.outputs == "f32[3]"


def test_state_that_is_replaced_is_an_input_and_no_constant() -> None:
    file = lab(
        HEAD
        + "class Trainer:\n"
        + "    def __init__(self):\n        self.w = jnp.ones((3, 3))\n        self.k = jnp.ones(3)\n"
        + "        self.total = 0.0\n"
        + "    def step(self, x):\n"
        + "        self.w = self.w - x\n        self.total += x.sum()\n        return self.k * x\n"
    )
    traced = file.trace("Trainer.step", self="= Trainer()", x="f32[3]")
    assert traced.updates == ("self.w", "self.total")
    assert traced.constants == (("f32[3]", 12),), "only what is read is a constant"
    head = traced.jaxpr.partition(" let")[0]
    assert head.count("f32[3,3]") == 1
    assert traced.outputs == "f32[3]"


def test_state_that_must_be_constant_is_an_output_alone() -> None:
    file = lab(
        HEAD
        + "class C:\n    def __init__(self): self.n = jnp.ones(())\n"
        + "    def f(self, x):\n        k = int(self.n)\n        self.n = self.n + x.sum()\n"
        + "        return x * k\n"
    )
    traced = file.trace("C.f", self="= C()", x="f32[3]")
    assert traced.updates == ("self.n",)
    assert traced.jaxpr.startswith("{ lambda a:f32[]; b:f32[3]. let"), traced.jaxpr


LEFT_OUT = [
    ("N = 0", "global N; N += 1", "N"),
    ("S = {}", "S['seen'] = 'f'", "S"),
    ("S = [1, 2]", "S.pop()", "S"),
    ("S = set()", "S.add(1)", "S"),
    ("S = np.zeros(3)", "S[0] = 1", "S"),
]


@pytest.mark.parametrize(("made", "update", "name"), LEFT_OUT)
def test_what_is_no_array_is_named_and_left_out(made: str, update: str, name: str) -> None:
    file = lab(HEAD + f"{made}\ndef f(x):\n    {update}\n    return x.sum()\n")
    before = repr(file.namespace[name])
    traced = file.trace("f", x="f32[3]")
    assert (traced.updates, traced.left_out) == ((name,), (name,))
    assert repr(file.namespace[name]) == before


def test_a_jitted_function_returns_no_state() -> None:
    file = lab(
        HEAD
        + "LOG = []\n@jax.jit\ndef f(s, x):\n"
        + "    s['a'] = x\n    LOG.append(x)\n    return x.sum()\n"
    )
    traced = file.trace("f", s="= {'a': jnp.zeros(3)}", x="f32[3]")
    assert (traced.updates, traced.left_out) == (("LOG",), ("LOG",))
    assert outputs(traced).count(",") == 1, traced.jaxpr
    assert file.namespace["LOG"] == []


def test_what_python_computes_once_or_imports_is_no_update() -> None:
    file = lab(
        HEAD
        + "class C:\n    @functools.cached_property\n    def table(self): return jnp.ones(3)\n"
        + "    def f(self, x):\n        import json\n        return self.table * x\n"
        + "C0 = C()\n"
    )
    traced = file.trace("C.f", self="= C0", x="f32[3]")
    assert traced.updates == ()
    assert vars(file.namespace["C0"]) == {}, "no tracer stays"


def test_the_module_is_as_before_when_the_trace_fails() -> None:
    file = lab(
        HEAD + "S = []\ndef f(x):\n    S.append(x)\n    return x @ jnp.ones(5)\n",
    )
    file.fails("f", x="f32[3]")
    assert file.namespace["S"] == []


def test_cycles_and_objects_with_odd_methods_do_no_harm() -> None:
    file = lab(
        HEAD
        + "class Odd(dict):\n"
        + "    def __getattribute__(self, name): raise RuntimeError(name)\n"
        + "    def __iter__(self): raise RuntimeError\n"
        + "    def __eq__(self, other): raise RuntimeError\n"
        + "    __hash__ = None\n"
        + "class Holder:\n    __class__ = property(lambda self: 1 / 0)\n"
        + "    def __setattr__(self, name, value): raise RuntimeError\n"
        + "ODD, HOLDER = Odd(), Holder()\n"
        + "RING = [ODD, HOLDER]\nRING.append(RING)\n"
        + "def f(x):\n    dict.__setitem__(ODD, 'a', x)\n"
        + "    object.__setattr__(HOLDER, 'b', x)\n    RING[2][2].append(x)\n    return x\n"
    )
    traced = file.trace("f", x="f32[3]")
    assert sorted(traced.updates) == ["HOLDER.b", "ODD", "RING"]
    assert list(dict.keys(file.namespace["ODD"])) == []
    assert len(file.namespace["RING"]) == 3


def test_example_inputs_leave_the_module_as_it_was() -> None:
    file = lab(
        HEAD
        + "SEEN = []\ndef batch():\n    SEEN.append(jnp.zeros(3))\n    return SEEN[0]\n"
        + "def f(x): return x + 1\n"
    )
    assert file.trace("f", x="= batch()").outputs == "f32[3]"
    assert file.namespace["SEEN"] == []


def test_numbers_in_pytrees_are_traced_as_jit_traces_them() -> None:
    file = lab(
        HEAD
        + "Rates = collections.namedtuple('Rates', 'first last')\n"
        + "def f(state, x): return x * state['lr'] + state['step'], state['flag'], state['r'].last\n"
        + "def g(state, x):\n    if state['step'] > 3: return x\n    return -x\n"
    )
    state = "{'lr': 0.1, 'step': 3, 'flag': True, 'r': Rates(1j, 2.0), 'name': 'a', 'act': jnp.sin}"
    traced = file.trace("f", state=f"= {state}", x="f32[3]")
    expected = jax.make_jaxpr(file.namespace["f"])(
        {"lr": 0.1, "step": 3, "flag": True, "r": file.namespace["Rates"](1j, 2.0)},
        np.ones(3, np.float32),
    )
    assert traced.jaxpr == str(expected)
    failed = file.fails("g", state="= {'step': 3}", x="f32[3]")
    assert failed.failure.type == "jax.errors.TracerBoolConversionError"


def test_numbers_that_are_arguments_and_shapes_stay_as_they_are() -> None:
    file = lab(
        HEAD
        + "def f(x, n, causal, shape, axes):\n"
        + "    return jnp.zeros(shape) if causal and n > 2 else x.sum(axes['axis'])\n"
    )
    request = file.request(
        "f", {"B": 4}, {"x": "f32[3]", "n": "3", "causal": "True", "shape": "= (B, 2)"}
    )
    axes = TreeSpec("dict", (ValueSpec("0", literal=True),), ("'axis'",))
    request = replace(request, arguments=(*request.arguments, Argument("axes", axes)))
    assert file.ask(request).outputs == "f32[4,2]"


def test_static_arguments_of_a_jit_may_hold_numbers() -> None:
    file = lab(
        HEAD
        + "Sizes = collections.namedtuple('Sizes', 'n m')\n"
        + "@functools.partial(jax.jit, static_argnames='dims')\n"
        + "def f(x, dims): return [x] * dims.n\n"
    )
    assert file.trace("f", x="f32[3]", dims="= Sizes(2, 3)").outputs == "[f32[3], f32[3]]"


@pytest.mark.skipif(importlib.util.find_spec("equinox") is None, reason="needs equinox")
def test_numbers_of_equinox_modules_stay_as_they_are() -> None:
    file = lab(
        HEAD
        + "import equinox as eqx\ndef f(drop, x):\n"
        + "    return drop(x, key=jax.random.key(0)) if not drop.inference else x\n"
    )
    assert file.trace("f", drop="= eqx.nn.Dropout(0.5)", x="f32[3]").outputs == "f32[3]"


def test_references_are_updates() -> None:
    file = lab(
        HEAD
        + "class C:\n    def __init__(self): self.r = jax.new_ref(jnp.zeros(3))\n"
        + "S = C()\n"
        + "def f(w, k, x):\n    w[...] += x\n    S.r[...] = x\n    return x * k[...]\n"
    )
    made = "= jax.new_ref(jnp.zeros(3))"
    traced = file.trace("f", w=made, k=made, x="f32[3]")
    assert traced.updates == ("S.r", "w")
    assert traced.outputs == "f32[3]"


NNX = """\
from flax import nnx
class Model(nnx.Module):
    def __init__(self, rngs):
        self.count = nnx.Variable(jnp.zeros(3))
        self.layer = nnx.Linear(3, 3, rngs=rngs)
    def __call__(self, x):
        self.count[...] += x
        return self.layer(x)
def bump(c, x, mode='train'):
    c.count[...] = c.count[...] + jnp.sin(x)
    return x.sum()
def forward(c, x):
    return c.layer(x)
jitted = nnx.jit(bump, static_argnames="mode", donate_argnums=0)
simple = nnx.jit(bump, graph_updates=False) if hasattr(nnx, "set_graph_updates") else nnx.jit(bump)
"""

needs_flax = pytest.mark.skipif(importlib.util.find_spec("flax") is None, reason="needs flax")


@needs_flax
@pytest.mark.parametrize("name", ["bump", "jitted", "simple"])
def test_variables_of_nnx_modules_are_updates(name: str) -> None:
    file = lab(HEAD + NNX)
    traced = file.trace(name, c="= Model(nnx.Rngs(0))", x="f32[3]")
    assert (traced.updates, traced.left_out, traced.outputs) == (("c",), (), "f32[]")
    assert "add" in traced.jaxpr


@needs_flax
def test_nnx_modules_that_are_only_read_are_no_outputs() -> None:
    file = lab(HEAD + NNX)
    traced = file.trace("forward", c="= Model(nnx.Rngs(0))", x="f32[3]")
    assert (traced.updates, outputs(traced).count(",")) == ((), 1)


@needs_flax
def test_of_self_the_attribute_is_named() -> None:
    file = lab(HEAD + NNX)
    traced = file.trace("Model.__call__", self="= Model(nnx.Rngs(0))", x="f32[3]")
    assert traced.updates == ("self.count",)


@needs_flax
def test_nnx_modules_that_are_no_arguments_are_updated_too() -> None:
    file = lab(
        HEAD
        + NNX
        + "MODEL = Model(nnx.Rngs(0))\n"
        + "class Trainer:\n"
        + "    def __init__(self): self.model, self.same = MODEL, [MODEL]\n"
        + "    def step(self, x):\n        self.model(x)\n        return bump(self.same[0], x)\n"
        + "def step(x): return bump(MODEL, x)\n"
    )
    traced = file.trace("step", x="f32[3]")
    assert (traced.updates, traced.outputs, traced.constants) == (("MODEL",), "f32[]", ())
    held = file.trace("Trainer.step", self="= Trainer()", x="f32[3]")
    assert (held.updates, held.outputs) == (("self.model",), "f32[]")
    assert outputs(held).count(",") == 3, "the result, and the three arrays of the one module"
    assert (np.asarray(file.namespace["MODEL"].count[...]) == 0).all()


def sourcerized(file: Lab, function: str, transform: str = "", **arguments: str) -> str:
    wanted = TransformedSource(style="pretty", transform=transform)
    request = file.request(function, {}, arguments)
    return file.ask(Sourcerize(request.id, request, wanted)).text


TRAINER = (
    "class Trainer:\n    def __init__(self): self.w = {'a': jnp.ones(3)}\n"
    "    def step(self, x):\n        self.w = {'a': self.w['a'] - x}\n        return x.sum()\n"
)


def test_sourcerized_functions_take_and_return_their_state() -> None:
    file = lab(HEAD + TRAINER)
    text = sourcerized(file, "Trainer.step", self="= Trainer()", x="f32[3]")
    assert "def step(self, x, *, state):" in text
    assert "state['self.w']['a'] - x" in text.replace('"', "'")
    assert "{'self.w': {'a': " in text.replace('"', "'")
    jitted = sourcerized(file, "Trainer.step", "jit", self="= Trainer()", x="f32[3]")
    assert "{'self.w': {'a': " in jitted.replace('"', "'")
    gradient = sourcerized(file, "Trainer.step", "vmap", self="= Trainer()", x="f32[3]")
    assert "self.w" not in gradient


def test_what_two_functions_update_is_compared() -> None:
    file = lab(
        HEAD
        + "S = [jnp.ones(3)]\n"
        + "def f(x):\n    S[0] = S[0] + x + x\n    return x.sum()\n"
        + "def g(x):\n    S[0] = S[0] + 2 * x\n    return x.sum()\n"
        + "def h(x):\n    S[0] = S[0] + x\n    return x.sum()\n"
    )
    f, g, h = (file.trace(name, x="f32[3]").id for name in "fgh")
    assert file.ask(Compare(0, f, g)).same
    compared = file.ask(Compare(0, f, h))
    assert (compared.same, compared.words[:16]) == (False, "result 1 differs")


def test_state_of_a_call_with_values_is_compared() -> None:
    file = lab(
        HEAD
        + "S = [jnp.ones(3)]\n"
        + "def f(s, x):\n    s['a'] = x + x if float(x[0]) < 99 else x\n    return x.sum()\n"
        + "def g(s, x):\n    s['a'] = jnp.where(x[0] < 99, 2 * x, x)\n    return x.sum()\n"
        + "def h(s, x):\n    s['a'] = x\n    return x.sum()\n"
    )
    arguments = {"s": "= {'a': jnp.ones(3)}", "x": "f32[3]"}
    with pytest.raises(UserError):
        file.trace("f", **arguments)
    run = file.request("f", {}, arguments)
    for name, same in (("g", True), ("h", False)):
        request = Compare(0, 0, file.trace(name, **arguments).id, run)
        found = file.ask(request)
        assert found.same is same, found.words


PRIMITIVE = """\
from jax.extend.core import Primitive
double = Primitive("double")
@double.def_impl
def _(x): return x * 2
@double.def_abstract_eval
def shape_of(x):
    kind = x.shape, x.dtype
    return jax.core.ShapedArray(*kind)
def f(x): return double.bind(x + 1)
"""


def test_rules_of_own_primitives_may_be_observed() -> None:
    traced = lab(HEAD + PRIMITIVE).trace("f", x="f32[3]")
    assert "double" in traced.jaxpr
    assert traced.outputs == "f32[3]"
