"""What a call is written as is read back as the same types."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsight import examples
from jaxsight.recording.arguments import write_call
from jaxsight.wire.messages.inputs import ArraySpec, InputSpec, KeySpec, TreeSpec, ValueSpec
from tests.examples.fixtures import function


def read(text: str) -> dict[str, InputSpec]:
    """What the tracer gets for the text of a call of `f`."""
    outside = examples.OutsideSet("recorded", "recorded", text)
    found = examples.of(
        function("def f(x=0, y=0, *rest, **options): ..."), sizes={}, outside=[outside]
    )
    (only,) = found.sets
    return {argument.name: argument.spec for argument in only.arguments}


def meaning(spec: InputSpec) -> object:
    """The value that a spec stands for, with arrays as their types."""
    match spec:
        case ArraySpec(dtype, shape, weak):
            return np.dtype(getattr(jnp, dtype)), shape, weak
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
    return np.dtype(aval.dtype), aval.shape, bool(aval.weak_type)


DTYPES = ["float32", "bfloat16", "float16", "int32", "int8", "uint32", "bool", "complex64", "int4"]

shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
arrays = st.one_of(
    st.builds(jnp.zeros, shapes, st.sampled_from(DTYPES)),
    st.builds(np.zeros, shapes, st.sampled_from(DTYPES[:1] + DTYPES[2:7])),
    st.builds(np.float32, st.floats(width=32)),
    st.builds(jax.ShapeDtypeStruct, shapes, st.sampled_from(DTYPES).map(jnp.dtype)),
    st.builds(lambda: jnp.asarray(1.5)),
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
@settings(max_examples=300, deadline=None)
def test_a_written_call_is_read_back_as_the_same_types(x: Any, y: Any) -> None:
    written = write_call([("x", x), ("y", y)], {})
    assert written.unwritten == ()
    found = read(written.text)
    assert meaning(found["x"]) == expected(x)
    assert meaning(found["y"]) == expected(y)
