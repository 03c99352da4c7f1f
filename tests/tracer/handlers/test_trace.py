"""What a traced function is answered with."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxsight.tracer.failures import UserError
from jaxsight.wire.messages.inputs import Argument, ArraySpec, KeySpec, TreeSpec, ValueSpec
from jaxsight.wire.messages.requests import Show
from jaxsight_source.compat.inner import equation_count
from tests.tracer.handlers.lab import lab, spec

HEAD = "import functools, jax, jax.numpy as jnp, numpy as np\n"


def test_parameters_outputs_and_jaxpr() -> None:
    file = lab(HEAD + "def f(x, n=2):\n    return {'y': x * n, 'n': n}\n")
    traced = file.trace("f", x="f32[3]")
    assert traced.parameters == (("x", "f32[3]"), ("n", "2"))
    assert traced.outputs == "{'n': i32[], 'y': f32[3]}"
    assert traced.jaxpr == ("{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[] in (2:i32[], b) }")
    assert not traced.folded
    assert traced.equations == 1


SAME = [
    ("def f(x):\n    return x @ x.T + 1", ("f32[3,4]",)),
    ("def f(x):\n    return jax.lax.scan(lambda c, v: (c + v, c), 0., x)", ("f32[3]",)),
    ("def f(x):\n    return jax.grad(lambda v: jnp.sin(v).sum())(x), np.ones(3) + x", ("f32[3]",)),
    ("w = np.arange(6.)\ndef f(x):\n    return jax.jit(lambda v: v + w)(x), x", ("f32[6]",)),
    ("def f(x, y):\n    del y\n    return x, x, 1.0", ("f32[6]", "i32[]")),
]


@pytest.mark.parametrize(("source", "arguments"), SAME)
def test_the_jaxpr_is_that_of_make_jaxpr(source: str, arguments: tuple[str, ...]) -> None:
    file = lab(HEAD + source + "\n")
    names = ("x", "y")[: len(arguments)]
    traced = file.trace("f", **dict(zip(names, arguments, strict=True)))
    structs = []
    for text in arguments:
        given = spec(text)
        assert isinstance(given, ArraySpec)
        structs.append(jax.ShapeDtypeStruct(given.shape, np.dtype(given.dtype)))
    expected = jax.make_jaxpr(file.namespace["f"])(*structs)
    assert traced.equations == equation_count(expected)
    assert jaxprs_equal(file.stored(traced.id).jaxpr, expected)


def jaxprs_equal(one: object, other: object) -> bool:
    return str(one) == str(other)


def test_tracing_initialises_no_backend(fresh_python: Callable[[str], str]) -> None:
    done = fresh_python(
        """
        from tests.tracer.handlers.lab import lab
        file = lab("import jax\\ndef init(n): return jax.random.normal(jax.random.key(0), (n, n))\\n"
                   "def f(p, x, key): return p @ x + jax.random.normal(key, x.shape)\\n")
        print(file.trace("f", p="= init(3)", x="f32[3]", key="key<fry>[]").outputs)
        from jax._src import xla_bridge
        print(xla_bridge.backends_are_initialized())
        """
    )
    assert done == "f32[3]\nFalse\n"


@pytest.mark.parametrize(
    "decorator",
    [
        "@jax.jit",
        "@functools.partial(jax.jit, static_argnames='n')",
        "@functools.partial(jax.jit, static_argnums=(1,), donate_argnums=0)",
    ],
)
def test_a_jitted_function_shows_its_body(decorator: str) -> None:
    file = lab(HEAD + f"{decorator}\ndef f(x, n):\n    return x * 2\n")
    traced = file.trace("f", x="f32[3]", n="3")
    assert "mul" in traced.jaxpr
    assert "jit" not in traced.jaxpr
    assert traced.outputs == "f32[3]"


def test_static_arguments_of_a_jit_stay_python_values() -> None:
    file = lab(
        HEAD
        + "@functools.partial(jax.jit, static_argnames='n')\ndef f(x, n):\n    return [x] * n\n"
        + "@jax.jit\ndef g(x, n):\n    return x * n\n"
    )
    assert file.trace("f", x="f32[3]", n="2").outputs == "[f32[3], f32[3]]"
    assert "b:i32[]" in file.trace("g", x="f32[3]", n="2").jaxpr


def test_what_is_no_array_is_closed_over() -> None:
    file = lab(
        HEAD + "def f(p, x, mode):\n    return p['act'](x * p['n']), mode\ndef act(v): return -v\n"
    )
    request = file.request("f", {}, {"x": "f32[3]", "mode": "'train'"})
    params = TreeSpec(
        "dict", (ValueSpec("act", literal=False), ValueSpec("2", literal=True)), ("'act'", "'n'")
    )
    request = replace(request, arguments=(*request.arguments, Argument("p", params)))
    traced = file.ask(request)
    assert traced.parameters[0] == ("p", "{'act': act, 'n': 2}")
    assert traced.outputs == "(f32[3], 'train')"


def test_methods_properties_and_wrappers_are_found() -> None:
    file = lab(
        HEAD
        + "import dataclasses\n"
        + "@jax.tree_util.register_dataclass\n@dataclasses.dataclass\n"
        + "class Model:\n"
        + "    w: jax.Array\n"
        + "    def __call__(self, x): return self.w @ x\n"
        + "    @jax.jit\n    def jitted(self, x): return self.w @ x\n"
        + "    @property\n    def norm(self): return jnp.linalg.norm(self.w)\n"
        + "    @staticmethod\n    def twice(x): return x * 2\n"
        + "    @classmethod\n    def make(cls, n): return cls(jnp.ones((n, n)))\n"
        + "    class Inner:\n        @staticmethod\n        def thrice(x): return x * 3\n"
        + "half = functools.partial(Model.twice)\n"
        + "@jax.custom_vjp\ndef clip(x): return x\n"
        + "clip.defvjp(lambda x: (x, None), lambda _, g: (g,))\n"
        + "@jax.checkpoint\ndef saved(x): return jnp.sin(x)\n"
    )
    model = "= Model.make(3)"
    assert file.trace("Model.__call__", self=model, x="f32[3]").outputs == "f32[3]"
    assert file.trace("Model.jitted", self=model, x="f32[3]").outputs == "f32[3]"
    assert file.trace("Model.norm", self=model).parameters == (("self", "Model(w=f32[3,3])"),)
    assert file.trace("Model.twice", x="f32[3]").outputs == "f32[3]"
    assert file.trace("Model.make", n="2").outputs == "Model(w=f32[2,2])"
    assert file.trace("Model.Inner.thrice", x="f32[3]").outputs == "f32[3]"
    assert file.trace("half", x="f32[3]").outputs == "f32[3]"
    assert "custom_vjp_call" in file.trace("clip", x="f32[3]").jaxpr
    assert file.trace("saved", x="f32[3]").outputs == "f32[3]"


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        ("async def f(x): return x", "f", "f is an async function"),
        ("def f(x): yield x", "f", "f is a generator"),
        ("async def f(x): yield x", "f", "f is a generator"),
        ("class f: pass", "f", "f is a class"),
        ("f = 3", "f", "f is not a function but of type int"),
        ("", "f", "f is not defined"),
        ("class A: pass", "A.g", "A.g is not defined"),
        ("def f(): pass", "f.<locals>.g", "is a nested function"),
    ],
)
def test_what_cannot_be_traced_is_refused(source: str, name: str, message: str) -> None:
    failed = lab(source + "\n").fails(name).failure
    assert failed.stage == "find"
    assert message in failed.message


def test_equinox_modules_and_filter_jit() -> None:
    pytest.importorskip("equinox")
    file = lab(
        HEAD
        + "import equinox as eqx\n"
        + "@eqx.filter_jit\ndef f(model, x):\n    y = model(x)\n    return y, model\n"
        + "class Model(eqx.Module):\n    w: jax.Array\n    act: object\n"
        + "    @eqx.filter_jit\n    def __call__(self, x): return self.act(self.w @ x)\n"
        + "def init(n): return Model(jnp.ones((n, n)), jax.nn.relu)\n"
    )
    traced = file.trace("f", model="= init(3)", x="f32[3]")
    assert dict(traced.parameters)["model"] == "Model(w=f32[3,3], act=relu)"
    assert traced.outputs == "(f32[3], Model(w=f32[3,3], act=relu))"
    assert traced.jaxpr.startswith("{ lambda ; a:f32[3,3] b:f32[3]. let")
    seen = file.seen(file.trace("Model.__call__", self="= init(3)", x="f32[3]"))
    assert seen["self.w @ x"] == "f32[3]"
    assert seen["(self)"] == "Model(w=f32[3,3], act=relu)"


def test_flax_nnx_modules() -> None:
    pytest.importorskip("flax")
    file = lab(
        HEAD
        + "from flax import nnx\n"
        + "class Net(nnx.Module):\n"
        + "    def __init__(self, rngs):\n        self.layer = nnx.Linear(3, 4, rngs=rngs)\n"
        + "    def __call__(self, x): return nnx.relu(self.layer(x))\n"
        + "@nnx.jit\ndef f(net, x):\n    y = net(x)\n    return y\n"
    )
    traced = file.trace("f", net="= Net(nnx.Rngs(0))", x="f32[2,3]")
    assert traced.outputs == "f32[2,4]"
    assert file.trace("Net.__call__", self="= Net(nnx.Rngs(0))", x="f32[2,3]").outputs == "f32[2,4]"
    assert "dot_general" in traced.jaxpr


def test_optax_update_from_real_source() -> None:
    pytest.importorskip("optax")
    file = lab(
        HEAD
        + "import optax\n"
        + "optimizer = optax.adam(1e-3)\n"
        + "def params(n): return {'w': jnp.ones((n, n)), 'b': jnp.zeros(n)}\n"
        + "def step(p, state):\n"
        + "    grads = jax.grad(lambda q: (q['w'] @ q['b']).sum())(p)\n"
        + "    updates, state = optimizer.update(grads, state, p)\n"
        + "    return optax.apply_updates(p, updates), state\n"
    )
    traced = file.trace("step", p="= params(4)", state="= optimizer.init(params(4))")
    seen = file.seen(traced)
    assert seen["updates ="] == "{'b': f32[4], 'w': f32[4,4]}"
    assert seen["(state)"].startswith("(ScaleByAdamState(count=i32[], mu={'b': f32[4]")


def test_example_inputs_of_all_kinds() -> None:
    file = lab(
        HEAD
        + "def f(a, /, b, *rest, key, flag=True, **more):\n"
        + "    return a, b, rest, key, flag, more\n"
    )
    arguments = (
        Argument("a", ArraySpec("bfloat16", (2, 3))),
        Argument("b", TreeSpec("list", (ArraySpec("float8_e4m3fn", (4,)), ValueSpec("-1", True)))),
        Argument("rest[1]", ArraySpec("bool", ())),
        Argument("rest[0]", ArraySpec("int4", (8,))),
        Argument("key", KeySpec("fry", (2,))),
        Argument("extra", ArraySpec("float32", (), weak=True)),
    )
    traced = file.ask(replace(file.request("f", {}, {}), arguments=arguments))
    assert traced.parameters == (
        ("a", "bf16[2,3]"),
        ("b", "[f8_e4m3fn[4], -1]"),
        ("rest[0]", "i4[8]"),
        ("rest[1]", "bool[]"),
        ("key", "key<fry>[2]"),
        ("flag", "True"),
        ("extra", "f32[]"),
    )
    assert traced.outputs.startswith(
        "(bf16[2,3], [f8_e4m3fn[4], i32[]], (i4[8], bool[]), key<fry>[2]"
    )


@pytest.mark.parametrize("impl", ["fry", "rbg", "urbg", "unsafe_rbg", "threefry2x32"])
def test_keys_by_tag_and_by_name(impl: str) -> None:
    file = lab(HEAD + "def f(key): return jax.random.bits(key)\n")
    assert file.trace("f", key=f"key<{impl}>[]").outputs == "u32[]"


def test_expressions_are_evaluated_in_the_module_with_sizes_and_without_memory() -> None:
    file = lab(
        HEAD
        + "def init(n): return {'w': jnp.ones((n, n * 1024)), 'f': init}\ndef f(p): return p['w'][0]\n"
    )
    traced = file.trace("f", {"N": 1_000_000}, p="= init(N)")
    assert dict(traced.parameters)["p"] == "{'f': init, 'w': f32[1000000,1024000000]}"


def test_expressions_that_need_values_get_them() -> None:
    file = lab(
        HEAD
        + "class Plain:\n    def __init__(self): self.w = jnp.arange(3.)\ndef f(p, x): return p.w[0] + x\n"
    )
    assert file.trace("f", p="= Plain()", x="f32[]").outputs == "f32[]"
    assert file.trace("f", p="= Plain()", x="f32[3]").outputs == "f32[3]"
    other = lab(HEAD + "def init(): return jnp.ones(int(jnp.arange(4)[2]))\ndef f(x): return x\n")
    assert other.trace("f", x="= init()").outputs == "f32[2]"


def test_an_expression_is_evaluated_again_when_what_it_names_changed() -> None:
    file = lab(HEAD + "def f(x): return x\n", "def init(): return jnp.ones(3)\n")
    assert file.trace("f", x="= init()").outputs == "f32[3]"
    file.run("def init(): return jnp.ones(4)\n")
    assert file.trace("f", x="= init()").outputs == "f32[4]"


def test_a_function_that_changes_its_tree_does_not_change_the_example() -> None:
    file = lab(
        HEAD
        + "def init(): return {'w': jnp.ones(3)}\ndef f(p):\n    p['w'] = p['w'][:1]\n    return p['w']\n"
    )
    assert file.trace("f", p="= init()").outputs == "f32[1]"
    assert file.trace("f", p="= init()").parameters == (("p", "{'w': f32[3]}"),)


@pytest.mark.parametrize(
    ("arguments", "argument", "message"),
    [
        ({"x": "= missing(3)"}, "x", "name 'missing' is not defined"),
        ({"x": "= 1 +"}, "x", "invalid syntax"),
        ({"x": "f32[3]", "z": "f32[3]"}, "z", "f has no parameter z"),
        ({}, "x", "no example input for x"),
        ({"x": "key<nope>[]"}, "x", "nope"),
        ({"x": "1 +"}, "x", "invalid syntax"),
        ({"x": "= boom()"}, "x", "boom"),
    ],
)
def test_errors_of_example_inputs_name_the_argument(
    arguments: dict[str, str], argument: str, message: str
) -> None:
    file = lab(HEAD + "def boom(): raise RuntimeError('boom')\ndef f(x, y=1): return x\n")
    failed = file.fails("f", **arguments).failure
    assert failed.stage == "inputs"
    assert failed.argument == argument
    assert message in failed.message


def test_wide_inputs_follow_jax_and_warn() -> None:
    file = lab(HEAD + "def f(x, n): return x * n\n")
    traced = file.trace("f", x="f64[3]", n="i64[]")
    assert traced.parameters == (("x", "f32[3]"), ("n", "i32[]"))
    assert [warned.message.partition(":")[0] for warned in traced.warnings] == [
        "example input x",
        "example input n",
    ]


def test_wide_inputs_stay_wide_with_x64(fresh_python: Callable[[str], str]) -> None:
    done = fresh_python(
        """
        import jax
        jax.config.update("jax_enable_x64", True)
        from tests.tracer.handlers.lab import lab
        print(lab("def f(x, n): return x * n\\n").trace("f", x="f64[3]", n="i64[]").outputs)
        """
    )
    assert done == "f64[3]\n"


@pytest.mark.filterwarnings("default")
def test_warnings_are_collected_with_their_place() -> None:
    file = lab(HEAD + "def f(x):\n    y = x + 1\n    return y.astype(jnp.float64)\n")
    (warned,) = file.trace("f", x="f32[3]").warnings
    assert warned.category == "UserWarning"
    assert "float64" in warned.message
    assert warned.span is not None
    assert file.at(warned.span) == "y.astype(jnp.float64)"


@pytest.mark.filterwarnings("default")
def test_deprecations_are_those_of_the_users_own_uses() -> None:
    file = lab(
        HEAD
        + "import warnings\n"
        + "def old(level):\n"
        + "    warnings.warn('old is deprecated', DeprecationWarning, stacklevel=level)\n"
        + "def f(x):\n"
        + "    old(2)\n"
        + "    with warnings.catch_warnings():\n"
        + "        warnings.simplefilter('ignore')\n"
        + "        old(1)\n"
        + "    return x\n"
    )
    (warned,) = file.trace("f", x="f32[3]").warnings
    assert (warned.category, warned.message) == ("DeprecationWarning", "old is deprecated")


def test_captured_constants_are_listed_with_their_size() -> None:
    file = lab(HEAD + "table = np.ones((4, 8), np.float32)\ndef f(x): return x @ table\n")
    assert file.trace("f", x="f32[4]").constants == (("f32[4,8]", 128),)


def test_traces_are_kept_for_showing_up_to_a_number() -> None:
    file = lab(HEAD + "def f(x): return x + 1\n")
    first = file.trace("f", x="f32[3]")
    assert "add" in file.ask(Show(0, first.id)).text
    for _ in range(20):
        file.trace("f", x="f32[3]")
    with pytest.raises(UserError, match="no longer kept"):
        file.ask(Show(0, first.id))


def test_a_thousand_traces_leave_nothing_behind() -> None:
    file = lab(HEAD + "def f(x): return jnp.sin(x) @ x\n")
    counts = []
    for size in (0, 20, 100):  # JAX itself keeps those of traces that failed
        for _ in range(size):
            file.trace("f", x="f32[3]")
        jax.clear_caches()
        gc.collect()
        counts.append(sum(isinstance(thing, jax.core.Tracer) for thing in gc.get_objects()))
    assert counts[1:] == [counts[0]] * 2


def test_a_method_of_an_unbound_linen_module_is_traced_with_its_variables() -> None:
    pytest.importorskip("flax")
    file = lab(
        HEAD
        + "from flax import linen as nn\n"
        + "class Net(nn.Module):\n"
        + "    @nn.compact\n    def __call__(self, x): return nn.Dense(4)(x)\n"
        + "def apply(variables, x): return Net().apply(variables, x)\n"
    )
    traced = file.trace("Net.__call__", self="= Net()", x="f32[2,3]")
    assert traced.outputs == "f32[2,4]"
    assert [name for name, _ in traced.parameters] == ["variables", "x"]
    variables = "= Net().init(jax.random.key(0), jnp.ones((2, 3)))"
    assert file.trace("apply", variables=variables, x="f32[2,3]").outputs == "f32[2,4]"


@pytest.mark.filterwarnings("default")
def test_what_a_library_does_itself_is_no_deprecation_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some_library.py").write_text(
        "import warnings\n"
        "def old(level):\n"
        "    warnings.warn('old is deprecated', DeprecationWarning, stacklevel=level)\n"
        "def calls_old(x, level):\n"
        "    old(level)\n"
        "    return x\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    file = lab(
        HEAD
        + "import some_library\n"
        + "def f(x):\n"
        + "    return some_library.calls_old(some_library.calls_old(x, 1), 2)\n"
        + "def g(x):\n"
        + "    some_library.old(1)\n"
        + "    some_library.old(2)\n"
        + "    return x\n"
    )
    assert file.trace("f", x="f32[3]").warnings == ()
    warned = file.trace("g", x="f32[3]").warnings
    assert [file.at(each.span) for each in warned if each.span is not None] == [
        "some_library.old(1)",
        "some_library.old(2)",
    ]
