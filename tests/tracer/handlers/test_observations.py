"""What is seen of a function's expressions while it is traced."""

from __future__ import annotations

import gc
import itertools
import weakref

import jax
import pytest

from jaxsight.tracer.interruptions import CancelledByServer
from tests.tracer.handlers.lab import lab

HEAD = "import jax, jax.numpy as jnp, numpy as np\n"


def test_every_expression_target_and_parameter_has_its_abstract_value() -> None:
    file = lab(HEAD + "def f(x, w):\n    h = x @ w\n    return jnp.tanh(h) * 2\n")
    assert file.seen(file.trace("f", x="f32[4,8]", w="f32[8,16]")) == {
        "(x)": "f32[4,8]",
        "(w)": "f32[8,16]",
        "h =": "f32[4,16]",
        "x @ w": "f32[4,16]",
        "x": "f32[4,8]",
        "w": "f32[8,16]",
        "jnp.tanh(h) * 2": "f32[4,16]",
        "jnp.tanh(h)": "f32[4,16]",
        "h": "f32[4,16]",
    }


def test_classes_that_flatten_themselves_are_looked_at_without_end() -> None:
    text = """
@jax.tree_util.register_pytree_node_class
class Scale:
    def __init__(self, by): self.by = by
    def tree_flatten(self): return (self.by,), (type(self),)
    @classmethod
    def tree_unflatten(cls, aux, children): return cls(*children)
    def __call__(self, x): return x * self.by
def f(x):
    scale = Scale(x[0])
    return scale(x)
"""
    file = lab(HEAD + text)
    seen = file.seen(file.trace("f", x="f32[4]"))
    assert seen["scale ="] == "Scale(by=f32[])"
    assert seen["scale(x)"] == "f32[4]"


def test_members_of_an_enum_may_be_made_by_the_class() -> None:
    text = """
import enum
class Status(enum.IntFlag):
    def __new__(cls, code, message):
        member = int.__new__(cls, code)
        member._value_ = code
        member.message = message
        return member
    BAD = 1, "bad"
def f(x):
    return x + Status.BAD
"""
    file = lab(HEAD + text)
    assert file.seen(file.trace("f", x="i32[4]"))["x + Status.BAD"] == "i32[4]"


@pytest.mark.parametrize(
    ("body", "name", "shown"),
    [
        ("B, T = x.shape", "T =", "3"),
        ("B, T = x.shape", "x.shape", "(2, 3)"),
        ("(a, *b), c = (x, 1, 2), x[0]", "c =", "f32[3]"),
        ("(a, *b), c = (x, 1, 2), x[0]", "b =", "[1, 2]"),
        ("for row in x: pass", "row =", "f32[3]"),
        ("x += 1", "x =", "f32[2,3]"),
        ("y: jax.Array = x.T", "y =", "f32[3,2]"),
        ("if (y := x.sum(0)).ndim: pass", "y =", "f32[3]"),
        ("p = {'w': x, 'n': 3}", "p =", "{'w': f32[2,3], 'n': 3}"),
        ("y = x, None, [x.mean()]", "y =", "(f32[2,3], None, [f32[]])"),
        ("y = [row * 2 for row in x]", "row * 2", "f32[3]"),
        ("y = jnp.ones(3, jnp.bfloat16)", "y =", "bf16[3]"),
        ("y = np.ones(3)", "y =", "f64[3](numpy)"),
        ("y = jnp.sin(1.0)", "y =", "~f32[]"),
        ("y = jax.random.key(0)", "y =", "key<fry>[]"),
        ("y = x.at[0].set(1)", "y =", "f32[2,3]"),
        ("y = x[0, :2]", "x[0, :2]", "f32[2]"),
        ("y = len(x) * 2.5", "len(x) * 2.5", "5.0"),
        ("y = jax.jit(lambda v: v.T)(x)", "v.T", "f32[3,2], jit"),
        ("y = x > 0", "y =", "bool[2,3]"),
    ],
)
def test_kinds_of_values(body: str, name: str, shown: str) -> None:
    file = lab(HEAD + f"def f(x):\n    {body}\n")
    assert file.seen(file.trace("f", x="f32[2,3]"))[name] == shown


@pytest.mark.parametrize(
    ("body", "name", "inside"),
    [
        ("jax.lax.scan(lambda c, v: (c + v, v * 2), 0.0, x)", "v * 2", "scan body (length 5)"),
        ("jax.lax.map(lambda v: v * 2, x)", "v * 2", "scan body (length 5)"),
        ("jax.lax.fori_loop(0, 4, lambda i, v: v * 2, x)", "v * 2", "fori_loop body (length 4)"),
        ("jax.lax.fori_loop(0, x.sum().astype(int), lambda i, v: v * 2, x)", "v * 2", "fori_loop body"),
        ("jax.lax.while_loop(lambda v: v.sum() < 3, lambda v: v * 2, x)", "v.sum() < 3", "while cond"),
        ("jax.lax.while_loop(lambda v: v.sum() < 3, lambda v: v * 2, x)", "v * 2", "while body"),
        ("jax.lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v, x)", "v * 2", "cond branch"),
        ("jax.vmap(lambda v: v * 2)(x)", "v * 2", "vmap over 5"),
        ("jax.vmap(lambda v: v * 2, axis_name='batch')(x)", "v * 2", "vmap over 5 (axis 'batch')"),
        ("jax.grad(lambda v: (v * 2).sum())(x)", "v * 2", "grad"),
        ("jax.jvp(lambda v: v * 2, (x,), (x,))", "v * 2", "jvp"),
        ("jax.checkpoint(lambda v: v * 2)(x)", "v * 2", "checkpoint"),
        ("jax.vmap(jax.grad(lambda v: (v * 2) ** 2))(x)", "v * 2", "vmap over 5, grad"),
        ("jax.grad(lambda u: jax.vmap(lambda v: v * 2)(u).sum())(x)", "v * 2", "grad, vmap over 5"),
        ("jax.lax.scan(lambda c, w: (c, jax.vmap(lambda v: v * 2)(c)), x, None, 3)", "v * 2", "scan body (length 3), vmap over 5"),
    ],
)  # fmt: skip
def test_what_a_value_is_inside_of(body: str, name: str, inside: str) -> None:
    file = lab(HEAD + f"def f(x):\n    return {body}\n")
    _, _, found = file.seen(file.trace("f", x="f32[5]"))[name].partition(", ")
    assert found == inside


def test_shard_map_body_is_seen_with_the_shape_of_one_shard() -> None:
    file = lab(
        HEAD
        + "from jax.sharding import AbstractMesh, AxisType, PartitionSpec as P\n"
        + "mesh = AbstractMesh((4,), ('d',), axis_types=(AxisType.Auto,))\n"
        + "def f(x):\n"
        + "    return jax.shard_map(lambda v: v * 2, mesh=mesh, in_specs=P('d'), out_specs=P('d'))(x)\n"
    )
    shown = file.seen(file.trace("f", x="f32[8]"))["v * 2"]
    assert shown.startswith("f32[2]")
    assert shown.endswith(", shard_map over d")


def test_a_loop_body_shows_the_types_of_the_pass_that_counts() -> None:
    # JAX traces the body with a weakly typed carry first, and throws that away.
    file = lab(HEAD + "def f(x):\n    return jax.lax.scan(lambda c, v: (c + v, c), 0.0, x)\n")
    assert (
        file.seen(file.trace("f", x="f32[5]"))["(c + v, c)"]
        == "(f32[], f32[]), scan body (length 5)"
    )
    assert file.seen(file.trace("f", x="f32[5]"))["c + v"] == "f32[], scan body (length 5)"


def test_values_of_several_calls_are_kept_up_to_a_number_and_counted_beyond() -> None:
    file = lab(
        HEAD
        + "def g(n):\n    return jnp.ones(n)\ndef f():\n    return [g(n) for n in range(1, 8)]\n"
    )
    assert file.seen(file.trace("f"))["jnp.ones(n)"] == "f32[1] | f32[2] | f32[3] | f32[4] | 3 more"


def test_functions_modules_and_strings_are_not_observed() -> None:
    file = lab(HEAD + "def f(x, mode):\n    act = jnp.sin\n    return jax.tree.map(act, x), mode\n")
    assert set(file.seen(file.trace("f", x="f32[5]", mode="'a'"))) == {
        "(x)",
        "x",
        "jax.tree.map(act, x)",
        "jax.tree.map(act, x), mode",
    }


HELPER = HEAD + "@jax.jit\ndef helper(v):\n    return v * 2\n"


def test_body_of_an_inner_jit_that_jax_has_cached_still_shows() -> None:
    file = lab(HELPER, "def f(x):\n    return helper(x) + 1\n")
    first = file.seen(file.trace("f", x="f32[5]"))
    again = file.seen(file.trace("f", x="f32[5]"))
    assert first["v * 2"] == "f32[5], jit"
    assert again == first


def test_a_cached_body_shows_the_shapes_of_this_call_only() -> None:
    file = lab(HELPER, "def f(x):\n    return helper(x) + 1\n")
    file.trace("f", x="f32[5]")
    file.trace("f", x="f32[7]")
    assert file.seen(file.trace("f", x="f32[5]"))["v * 2"] == "f32[5], jit"


def test_a_cached_body_says_what_it_is_inside_of_now() -> None:
    file = lab(
        HELPER,
        "def f(x):\n    return helper(x) + 1\n",
        "def g(x):\n    return jax.lax.scan(lambda c, v: (c, helper(v)), 0.0, x)\n",
    )
    file.trace("f", x="f32[5]")
    seen = file.seen(file.trace("g", x="f32[2,5]"))
    assert seen["v * 2"] == "f32[5], scan body (length 2), jit"


def test_a_cached_body_that_is_no_longer_called_shows_nothing() -> None:
    file = lab(HELPER, "def f(x):\n    return helper(x) + 1\n", "def g(x):\n    return x\n")
    file.trace("f", x="f32[5]")
    assert "v * 2" not in file.seen(file.trace("g", x="f32[5]"))


def test_a_body_cached_while_the_file_was_executed_shows_in_a_trace() -> None:
    file = lab(HELPER, "start = helper(jnp.ones(5))\n", "def f(x):\n    return helper(x)\n")
    assert file.seen(file.trace("f", x="f32[5]"))["v * 2"] == "f32[5], jit"


def test_a_traced_jit_function_that_jax_has_cached_still_shows() -> None:
    file = lab(HELPER)
    assert file.seen(file.trace("helper", v="f32[5]")) == file.seen(
        file.trace("helper", v="f32[5]")
    )


def test_functions_that_only_ran_while_the_file_was_executed_show_that() -> None:
    file = lab(
        HEAD + "def init(n):\n    return jnp.ones(n)\n",
        "w = init(3)\n",
        "def f(x):\n    return x @ w\n",
    )
    seen = file.seen(file.trace("f", x="f32[2,3]"))
    assert seen["jnp.ones(n)"] == "f32[3]"
    assert seen["w ="] == "f32[3]"


def test_a_traced_function_shows_the_trace_and_not_its_calls_at_module_level() -> None:
    file = lab(HEAD + "def f(x):\n    return x * 2\n", "f(jnp.ones(3))\n")
    assert file.seen(file.trace("f", x="f32[7]"))["x * 2"] == "f32[7]"


def test_a_chunk_executed_again_under_another_key_shows_only_the_new() -> None:
    file = lab(HEAD)
    for size in (3, 4):
        file.run(f"n = {size}\n")
        file.run("def f():\n    return jnp.ones(n)\n", key=str(size))
    assert file.seen(file.trace("f"))["jnp.ones(n)"] == "f32[4]"


def test_a_forgotten_chunk_shows_nothing() -> None:
    file = lab(HELPER, "def f(x):\n    return helper(x) + 1\n")
    file.trace("f", x="f32[5]")
    file.recorder.forget(file.chunks[0].id, file.chunks[0].key)
    assert "v * 2" not in file.seen(file.trace("f", x="f32[5]"))


def test_shapes_up_to_an_error_are_kept() -> None:
    file = lab(HEAD + "def f(x):\n    y = x.T\n    return y + jnp.ones(9)\n")
    error = file.fails("f", x="f32[2,3]")
    assert file.seen(error.observed)["y ="] == "f32[3,2]"
    assert file.seen(error.observed)["jnp.ones(9)"] == "f32[9]"


@pytest.mark.parametrize("decorator", ["", "@jax.jit\n"])
def test_cached_bodies_before_an_error_still_show(decorator: str) -> None:
    file = lab(
        HELPER, decorator + "def f(x):\n    y = jax.vmap(helper)(x)\n    return y @ nothing\n"
    )
    first = file.seen(file.fails("f", x="f32[2,5]").observed)
    assert first["v * 2"].startswith("f32[5], ")
    again = file.seen(file.fails("f", x="f32[2,5]").observed)
    assert again["v * 2"].startswith("f32[5], ")


def test_executions_of_one_text_are_told_apart_where_jax_has_cached_both() -> None:
    file = lab(HEAD, "def scale(v):\n    return v * n\n")
    traced = "def f(x):\n    return helper(x)\n"
    helper = "@jax.jit\ndef helper(v):\n    return scale(v)\n"
    file.run(helper, key="first")
    file.run(traced)
    file.namespace["n"] = 2
    file.trace("f", x="f32[5]")
    chunks, old = list(file.chunks), file.namespace["helper"]
    file.run(helper, key="second")
    file.trace("f", x="f32[5]")
    file.chunks, file.namespace["helper"] = chunks, old
    assert file.seen(file.trace("f", x="f32[5]"))["scale(v)"] == "f32[5], jit"


def test_no_tracer_outlives_the_trace() -> None:
    file = lab(
        HEAD
        + "def f(x):\n"
        + "    keep(ref(x))\n"
        + "    p = {'x': x}\n"
        + "    return jax.lax.scan(lambda c, v: (c, p['x'] * v), 0.0, x)\n"
    )
    kept: list[weakref.ref[object]] = []
    file.namespace.update(keep=kept.append, ref=weakref.ref)
    file.trace("f", x="f32[5]")
    gc.collect()
    assert kept[0]() is None


def test_jax_finds_no_leak() -> None:
    file = lab(HELPER, "def f(x):\n    return jax.vmap(lambda v: helper(v) + x.sum())(x)\n")
    with jax.checking_leaks():
        assert file.trace("f", x="f32[5]").outputs == "f32[5]"


def test_a_cancelled_trace_stops_at_the_next_expression() -> None:
    file = lab(HEAD + "def f(x):\n    while True:\n        x = x + 1\n        stop(x)\n")
    calls = itertools.count()  # the trace puts lists back as they were

    def stop(x: object) -> None:
        next(calls)
        file.recorder.cancelled = True

    file.namespace["stop"] = stop
    with pytest.raises(CancelledByServer):
        file.trace("f", x="f32[5]")
    assert next(calls) == 1


def test_a_long_python_loop_is_counted_not_collected() -> None:
    file = lab(
        HEAD + "def f(x):\n    n = 0\n    for i in range(100_000):\n        n += i\n    return x\n"
    )
    shown = file.seen(file.trace("f", x="f32[]"))["i"]
    assert shown.startswith("0 | 1 | 2 | 3 | ")


def test_a_mutable_tree_shows_what_it_was_at_each_time() -> None:
    file = lab(
        HEAD
        + "def f(x):\n    out = []\n    for _ in range(2):\n        out.append(x)\n        now = out\n    return x\n"
    )
    assert file.seen(file.trace("f", x="f32[5]"))["now ="] == "[f32[5]] | [f32[5], f32[5]]"


def test_columns_are_bytes_of_utf8() -> None:
    file = lab(HEAD + "def f(größe):\n    å = 'é', größe * 2\n    return å\n")
    seen = file.seen(file.trace("f", größe="f32[5]"))
    assert seen["größe * 2"] == "f32[5]"
    assert seen["(größe)"] == "f32[5]"


def test_describing_a_class_that_computes_while_it_is_flattened_adds_no_equation() -> None:
    file = lab(
        HEAD
        + """
@jax.tree_util.register_pytree_node_class
class Scaled:
    def __init__(self, a):
        self.a = a

    def tree_flatten(self):
        return (self.a * 3.0,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def f(x):
    scaled = Scaled(x)
    return scaled.a
"""
    )
    traced = file.trace("f", x="f32[5]")
    assert file.seen(traced)["scaled ="] == "Scaled(a=f32[5])"
    assert "mul" not in traced.jaxpr
