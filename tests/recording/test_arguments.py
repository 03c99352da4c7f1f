"""What a call is written as is read back as the same types."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from jaxsight.examples import choice
from jaxsight.examples.sets import OutsideSet
from jaxsight.recording.expressions import write_call
from jaxsight.wire.messages.inputs import ArraySpec, InputSpec, KeySpec, TreeSpec, ValueSpec
from tests.examples.fixtures import function


def read(text: str) -> dict[str, InputSpec]:
    """What the tracer gets for the text of a call of `f`."""
    outside = OutsideSet("recorded", "recorded", text)
    found = choice.of(
        function("def f(x=0, y=0, *rest, **options): ..."), sizes={}, outside=[outside]
    )
    (only,) = found.sets
    return {argument.name: argument.spec for argument in only.arguments}


def meaning(spec: InputSpec) -> object:
    """The value that a spec stands for, with arrays as their types."""
    match spec:
        case ArraySpec(dtype, shape, weak, on_host=on_host):
            return np.dtype(getattr(jnp, dtype)), shape, weak, on_host
        case KeySpec(impl, shape):
            return impl, shape
        case ValueSpec(source):
            return eval(source)
        case TreeSpec("dict", children, keys):
            return dict(zip(map(eval, keys), map(meaning, children), strict=True))
        case TreeSpec(kind, children):
            return [list, tuple][kind == "tuple"](map(meaning, children))
    raise AssertionError(spec)


def expected(value: Any) -> object:
    """The same for the value of an argument."""
    if isinstance(value, dict):
        return {key: expected(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(expected, value))
    if not hasattr(value, "dtype"):
        return value
    aval = jax.typeof(value)
    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        name = str(jax.random.key_impl(value))
        return {"threefry2x32": "fry"}.get(name, name), aval.shape
    on_host = getattr(getattr(value, "sharding", None), "memory_kind", "") == "pinned_host"
    return np.dtype(aval.dtype), aval.shape, bool(aval.weak_type), on_host


DTYPES = ["float32", "bfloat16", "float16", "int32", "int8", "uint32", "bool", "complex64", "int4"]

_CPU, _HOST = jax.devices("cpu")[0], "pinned_host"
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
arrays = st.one_of(
    st.builds(jnp.zeros, shapes, st.sampled_from(DTYPES)),
    st.builds(np.zeros, shapes, st.sampled_from(DTYPES[:1] + DTYPES[2:7])),
    st.builds(np.float32, st.floats(width=32)),
    st.builds(jax.ShapeDtypeStruct, shapes, st.sampled_from(DTYPES).map(jnp.dtype)),
    st.builds(lambda: jnp.asarray(1.5)),
    st.builds(lambda: jax.device_put(jnp.zeros(3), SingleDeviceSharding(_CPU, memory_kind=_HOST))),
    st.builds(lambda impl: jax.random.key(0, impl=impl), st.sampled_from(["threefry2x32", "rbg"])),
    st.builds(lambda: jax.random.split(jax.random.key(0), 3)),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.sampled_from([0.1, 3e-4, -1e-06, 0.0, 1.0, 2.5e10]),
    st.sampled_from(["train", "bqhd,bkhd->bhqk", ""]),
)
keys = st.one_of(st.text("abc_/", max_size=4), st.integers(0, 9), st.booleans())
trees = st.recursive(
    arrays | scalars,
    lambda parts: st.one_of(
        st.lists(parts, max_size=3),
        st.lists(parts, max_size=3).map(tuple),
        st.dictionaries(keys, parts, max_size=3),
    ),
    max_leaves=8,
)


@given(trees, trees)
@settings(max_examples=60, deadline=None)
def test_a_written_call_is_read_back_as_the_same_types(x: Any, y: Any) -> None:
    written = write_call([("x", x), ("y", y)], {})
    assert written.unwritten == ()
    found = read(written.text)
    assert meaning(found["x"]) == expected(x)
    assert meaning(found["y"]) == expected(y)


class State(NamedTuple):
    weights: dict[str, Any]
    step: int


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Batch:
    x: Any
    name: str = dataclasses.field(default="b", metadata={"static": True})


class Mode(enum.Enum):
    TRAIN = 1


class Plain:
    def __init__(self, width: int) -> None:
        self.width = width


TABLE = object()


def expression(value: object) -> object:
    """The expression of an argument, and what it evaluates to in this module."""
    written = write_call([("x", value)], globals())
    assert written.unwritten == (), written
    name, _, source = written.text.partition(" = ")
    assert name == "x"
    return eval(source)


def test_objects_are_written_as_expressions_that_the_module_can_evaluate() -> None:
    made = expression(State({"w": jnp.ones((3, 4), "bfloat16")}, 7))
    assert isinstance(made, State)
    assert (made.weights["w"].shape, made.weights["w"].dtype, made.step) == ((3, 4), "bfloat16", 7)
    assert not made.weights["w"].any()
    made = expression([Batch(jax.random.key(3)), Mode.TRAIN, jnp.float32, jnp.tanh, TABLE])
    assert isinstance(made, list)
    assert made[0].name == "b"
    assert jnp.issubdtype(made[0].x.dtype, jax.dtypes.prng_key)
    assert made[1:] == [Mode.TRAIN, jnp.float32, jnp.tanh, TABLE]


def test_a_traced_argument_is_written_as_its_type() -> None:
    written: list[str] = []

    @jax.jit
    def f(x: Any, n: Any) -> Any:
        written.append(write_call([("x", x), ("n", n)], {}).text)
        return x * n

    jax.vmap(f, in_axes=(0, None))(jnp.ones((5, 3)), 2.0)
    assert written == ["x: f32[3]\nn: ~f32[]"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "x: 0.1"),
        (3e-4, "x: 0.0003"),
        (0.6931471805599453, "x: ~f32[]"),
        (float("nan"), "x: ~f32[]"),
        (2 + 1j, "x: ~c64[]"),
        ("sk4Ab9Zx81Lq02Rt77Yw", ""),
        ("/home/me/data", ""),
        ("a" * 100, ""),
        (2**70, ""),
        ({"lr": 0.5, "w": np.float32(3.25)}, "x: {'lr': 0.5, 'w': f32[]}"),
    ],
)
def test_numbers_that_were_computed_and_strings_that_may_be_secret_are_not_written(
    value: object, text: str
) -> None:
    assert write_call([("x", value)], {}).text == text


def test_a_parameter_for_a_secret_is_not_written() -> None:
    assert write_call([("password", "hunter2")], {}).text == ""


def test_what_cannot_be_written_is_named_with_the_reason() -> None:
    written = write_call([("self", Plain(3)), ("y", jnp.ones(2))], globals())
    assert written.text == "y: f32[2]"
    ((name, reason),) = written.unwritten
    assert (name, reason) == ("self", "`Plain` has no form as example input")


def test_shardings_are_written_with_their_mesh() -> None:
    mesh = jax.sharding.AbstractMesh((2, 4), ("data", "model"))
    sharding = NamedSharding(mesh, P("data", ("model",)))
    x = jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=sharding)
    written = write_call([("x", x), ("n", 1)], {})
    assert written.text.split("\n")[1:] == ["x: f32[8@data, 16@model]", "n: 1"]
    outside = OutsideSet("recorded", "recorded", written.text)
    (found,) = choice.of(function("def f(x, n): ..."), sizes={}, outside=[outside]).sets
    assert found.mesh is not None
    assert found.mesh.axes == (("data", 2), ("model", 4))
    assert found.arguments[0].spec == ArraySpec("float32", (8, 16), False, (("data",), ("model",)))


def test_star_arguments_keep_their_stars() -> None:
    text = write_call([("*rest", (jnp.ones(2), 3)), ("**options", {"a": jnp.ones(1)})], {}).text
    assert text == "*rest: (f32[2], 3)\n**options: {'a': f32[1]}"
    assert read(text).keys() == {"rest[0]", "rest[1]", "a"}
