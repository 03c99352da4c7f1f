"""StableHLO is read as the program that JAX lowers to it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax.extend.core import jaxpr_as_fun

from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from jaxsight_source.stablehlo.program import UnreadableProgram
from jaxsight_source.stablehlo.proof import prove
from jaxsight_source.stablehlo.reading import read
from jaxsight_source.written import load

F32 = jnp.float32


def struct(*shape: int, dtype: object = F32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def attention(q, k, v):
    return jax.nn.softmax(q @ k.T / np.sqrt(8.0)) @ v


def recurrent(w, xs):
    def step(h, x):
        h = jnp.tanh(w @ h + x)
        return h, h.sum()

    return lax.scan(step, jnp.zeros(4), xs)


def branches(i, x):
    x = lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)
    return lax.switch(i, [lambda x: x + 1, lambda x: x * 2, jnp.exp], x)


def constants(x):
    halves = np.array([[1, 2.5, -0.0, np.nan]], jnp.bfloat16)
    return x.astype(jnp.bfloat16) * halves, x * np.array([1 + 2j, 3j, 0, 1], np.complex64)


def reductions(x):
    return x.sum(0), x.max(), x.argmin(1), jnp.prod(x), jnp.sort(x), jnp.cumsum(x, 1)


PROGRAMS = [
    (attention, struct(3, 8), struct(5, 8), struct(5, 2)),
    (recurrent, struct(4, 4), struct(7, 4)),
    (branches, struct(dtype=jnp.int32), struct(4)),
    (constants, struct(3, 4)),
    (reductions, struct(3, 4)),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
@pytest.mark.parametrize("portable", [True, False], ids=["artifact", "text"])
def test_the_written_program_is_the_same_stablehlo(program, portable):
    function, *structs = program

    def lowered(function: object) -> str | bytes:
        if portable:
            return export.export(jax.jit(function))(*structs).mlir_module_serialized
        return jax.jit(function).lower(*structs).as_text()

    original = lowered(function)
    found = read(original)
    flat = jaxpr_as_fun(found.jaxpr)
    text = load(write(flat, tuple(structs), {}, SourceOptions(name=found.name, run=False)))
    proof = prove(original, found, text)
    assert proof.difference == ""
    assert proof.ran or "loop" in proof.not_run


def test_names_are_those_of_the_lowered_function():
    artifact = export.export(jax.jit(attention))(*PROGRAMS[0][1:]).mlir_module_serialized
    found = read(artifact)
    assert (found.name, found.names) == ("attention", ("q", "k", "v"))


def test_jitted_functions_keep_their_names():
    @jax.jit
    def scaled(x):
        return x * 2

    text = jax.jit(lambda x: scaled(x) + 1).lower(struct(3)).as_text()
    assert "name=scaled" in str(read(text).jaxpr)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {", "cannot read the program: "),
        ("module {}", "expected a function @main, found no public function"),
        (
            """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }""",
            r"expected static shapes, got tensor<\?xf32>",
        ),
        (
            """func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<f32> {
            %0 = "stablehlo.einsum"(%x, %y) <{einsum_config = "i,i->"}>
              : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
            return %0 : tensor<f32> }""",
            "cannot read stablehlo.einsum at ",
        ),
        (
            """func.func @main(%x: tensor<f32>) -> tensor<f32> {
            %0 = call @main(%x) : (tensor<f32>) -> tensor<f32>
            return %0 : tensor<f32> }""",
            "cannot read func.call at .*: @main calls itself",
        ),
    ],
)
def test_what_is_not_a_program_has_one_message(text, message):
    with pytest.raises(UnreadableProgram, match=message):
        read(text)


def test_an_unknown_foreign_function_is_named_with_its_attributes():
    text = """func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @scaled(%x) {
        api_version = 4 : i32, backend_config = {factor = 2.0 : f32, mode = "fast"}
      } : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }"""
    found = read(text)
    (call,) = found.opaque
    assert call.target == "scaled"
    assert dict(call.attributes) == {"factor": "2.000000e+00 : f32", "mode": '"fast"'}
    written = write(jaxpr_as_fun(found.jaxpr), (struct(2),), {})
    assert 'jax.ffi.ffi_call("scaled"' in written.text
    assert prove(text, found, load(written)).difference == ""


def test_a_layout_of_a_single_result():
    artifact = export.export(jax.jit(jnp.linalg.inv))(struct(3, 3)).mlir_module_serialized
    assert "lapack" not in str(read(artifact).jaxpr)


@pytest.mark.parametrize(("index", "expected"), [(-1, 3.0), (0, 2.0), (1, 3.0), (9, 3.0)])
def test_a_case_takes_its_last_branch_if_there_is_no_other(index, expected):
    text = """func.func public @main(%i: tensor<i32>) -> tensor<f32> {
      %a = stablehlo.constant dense<2.0> : tensor<f32>
      %b = stablehlo.constant dense<3.0> : tensor<f32>
      %0 = "stablehlo.case"(%i) ({ stablehlo.return %a : tensor<f32> },
        { stablehlo.return %b : tensor<f32> }) : (tensor<i32>) -> tensor<f32>
      return %0 : tensor<f32> }"""
    assert jaxpr_as_fun(read(text).jaxpr)(np.int32(index)) == [expected]
