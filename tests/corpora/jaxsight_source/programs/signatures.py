"""Signatures and pytrees, in and out."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from functools import partial, wraps
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


class Point(NamedTuple):
    x: Any
    y: Any = None


@partial(jax.tree_util.register_dataclass, data_fields=["w", "b"], meta_fields=["act"])
@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    act: str = "tanh"


@jax.tree_util.register_pytree_node_class
class Box:
    def __init__(self, content: Any, label: str) -> None:
        self.content = content
        self.label = label

    def tree_flatten(self) -> Any:
        return (self.content,), self.label

    @classmethod
    def tree_unflatten(cls, label: str, children: Any) -> Box:
        return cls(children[0], label)

    def apply(self, x: Any, *, scale: float = 2.0) -> Any:
        return self.content * x * scale


@program()
def nested_trees_with_none() -> Call:
    def f(tree: Any, pair: Any) -> Any:
        a, (b, none) = pair
        return {"out": [tree["a"]["b"] * a, None], "rest": (b, none, ()), "z": {}}

    return called(f, {"a": {"b": floats(2)}, "c": [None, {}]}, (floats(2), (integers(2), None)))


@program()
def dictionaries_with_awkward_keys() -> Call:
    def f(tree: Any) -> Any:
        return {1: tree["not an identifier"], 2: {("a", 2): tree["class"] * 2}, 3: tree['quo"te\n']}

    return called(f, {"not an identifier": floats(2), "class": floats(1), 'quo"te\n': 1.0})


@program(imports=("tests",))
def named_tuples_in_and_out() -> Call:
    def f(p: Any) -> Any:
        return Point(p.y, Point(p.x * 2))

    return called(f, Point(floats(2), {"k": floats(3)}))


@program(imports=("tests",))
def dataclasses_in_and_out() -> Call:
    def f(layer: Any, x: Any) -> Any:
        return dataclasses.replace(layer, w=layer.w * 2), jnp.tanh(layer.w @ x + layer.b)

    return called(f, Layer(floats(2, 3), floats(2)), floats(3))


@program(imports=("tests",))
def custom_nodes_in_and_out() -> Call:
    return called(
        lambda b, x: Box(b.content + x, b.label + "!"), Box(floats(2), "label"), floats(2)
    )


@program(imports=("tests",))
def methods_bound_and_unbound() -> Call:
    box = Box(floats(2), "bound")
    return called(lambda x: (box.apply(x), Box.apply(box, x, scale=3.0)), floats(2))


@program()
def a_bound_method() -> Call:
    return called(Box(jnp.asarray(floats(2)), "m").apply, floats(2), scale=4.0)


@program(imports=("tests",))
def an_unbound_method_with_its_object() -> Call:
    return called(Box.apply, Box(floats(2), "u"), floats(2))


@program()
def ordered_dictionaries_and_local_named_tuples() -> Call:
    pair = namedtuple("pair", ["left", "right"])

    def f(o: Any) -> Any:
        return OrderedDict(b=o["b"], a=o["a"] + 1), tuple(pair(o["b"], 1))

    return called(f, OrderedDict(b=floats(1), a=floats(2)))


@program()
def defaults_and_keywords() -> Call:
    def f(
        x: Any, /, y: Any = 2.0, *rest: Any, scale: Any = 3, mode: str = "sum", **more: Any
    ) -> Any:
        return getattr(jnp, mode)(x * y * scale + sum(rest) + sum(more.values()))

    return called(f, floats(2), floats(2), 1.0, floats(2), scale=5.0, mode="prod", extra=floats(2))


@program()
def defaults_left_alone() -> Call:
    def f(x: Any, y: Any = 2.0, *, mode: str = "sum", axis: str = "01") -> Any:
        return getattr(jnp, mode)(x * y, axis=len(axis) - 1)

    return called(f, floats(2, 3))


@program()
def static_values_of_many_kinds() -> Call:
    def f(x: Any, mode: str, axis: Any, dtype: Any, options: Any) -> Any:
        return getattr(x, mode)(axis=axis).astype(dtype) * len(options["k"])

    return called(f, floats(2, 3), "sum", None, jnp.bfloat16, {"k": "text"})


@program()
def a_partial_with_a_static_and_an_array() -> Call:
    def f(mode: str, w: Any, x: Any, *, scale: Any) -> Any:
        return getattr(jnp, mode)(w * x) * scale

    return called(partial(f, "sum", jnp.asarray(floats(3)), scale=2.0), floats(3))


@program()
def a_function_as_an_argument() -> Call:
    return called(lambda f, x: f(f(x)), jnp.sin, floats(3))


@program()
def a_wrapped_and_jitted_function() -> Call:
    def decorate(f: Any) -> Any:
        @wraps(f)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return f(*args, **kwargs) + 1

        return inner

    @jax.jit
    @decorate
    def g(x: Any, scale: Any = 2.0) -> Any:
        return x * scale

    return called(g, floats(3), scale=np.float32(4))


@program()
def a_callable_object() -> Call:
    class Affine:
        def __init__(self) -> None:
            self.w = jnp.asarray(floats(2, 2))

        def __call__(self, x: Any) -> Any:
            return self.w @ x

    return called(Affine(), floats(2))


@program()
def arguments_that_are_scalars_of_python() -> Call:
    return called(lambda i, f, b, c: (i + 1, f * 2, ~jnp.asarray(b), c * 1j), 3, 2.5, True, 1 + 2j)


@program()
def shapes_instead_of_arrays() -> Call:
    return called(lambda x, y: jnp.dot(x, y), jax.ShapeDtypeStruct((2, 3), np.float32), floats(3))


@program()
def results_of_nothing_and_of_one_leaf() -> Call:
    return called(lambda x: ((), [], {}, None, (x,)), floats(1))


@program()
def functions_of_no_arguments() -> Call:
    return called(lambda: {"a": jnp.arange(3) * 2, "b": jnp.ones(())})


@program()
def argument_names_that_shadow_modules() -> Call:
    def lax(jax: Any, jnp: Any, np: Any, dot: Any, sum: Any) -> Any:
        return jax @ jnp + np * dot - sum

    return called(lax, floats(2, 2), floats(2), floats(2), np.float32(2), floats(2))


@program()
def arguments_in_trees_that_shadow_modules() -> Call:
    def f(jax: Any, /, *np: Any, lax: float = 2.0, **jnp: Any) -> Any:
        return jax["lax"] * lax + np[0] @ jnp["np"], {"jnp": jax}

    return called(f, {"lax": floats(2)}, floats(2, 2), np=floats(2))


@program(imports=("tests",), gradient=False)
def trees_through_loops_and_jits() -> Call:
    @jax.jit
    def step(layer: Any, p: Any) -> Any:
        return Layer(layer.w * 2, layer.b, layer.act), Point(p.y, p.x)

    def f(layer: Any, p: Any) -> Any:
        (layer, p), ys = jax.lax.scan(lambda c, _: (step(*c), c[1].x), (layer, p), None, 3)
        return step(layer, p), ys

    return called(f, Layer(floats(2), None), Point(floats(2), floats(2)))


@program()
def partial_in_a_tree() -> Call:
    def f(p: Any, x: Any) -> Any:
        return p(x)

    return called(f, jax.tree_util.Partial(jnp.multiply, floats(3)), floats(3))
