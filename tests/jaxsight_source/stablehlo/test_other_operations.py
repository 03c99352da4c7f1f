"""Operations that JAX does not lower to are read as what they compute, or named with attributes."""

from __future__ import annotations

import pytest

from jaxsight_source.api import sourcerize
from jaxsight_source.stablehlo import UnreadableProgram


def program(arguments: str, results: str, body: str) -> bytes:
    """Return a module: types of `%0`, `%1`, …, those of the results, and its operations."""
    types = [one.strip() for one in arguments.split(";")]
    named = ", ".join(f"%{place}: {one}" for place, one in enumerate(types))
    return f"func.func @main({named}) -> ({results}) {{\n{body}\n}}".encode()


E, C, TOKEN = "tensor<4x3x5xf32>", "tensor<3xf32>", "!stablehlo.token"
GIVEN = "{epsilon = 0.001 : f32, feature_index = 1 : i64}"


@pytest.mark.parametrize(
    ("name", "operands", "results"),
    [
        ("inference", [E, C, C, C, C], [E]),
        ("training", [E, C, C], [E, C, C]),
        ("grad", [E, C, C, C, E], [E, C, C]),
    ],
)
def test_batch_normalization_has_the_bits_of_xla(name, operands, results):
    kinds, found = ", ".join(operands), ", ".join(results)
    read = ", ".join(f"%{place}" for place in range(len(operands)))
    body = f"""%r:{len(results)} = "stablehlo.batch_norm_{name}"({read}) {GIVEN}
      : ({kinds}) -> ({found})
    return {", ".join(f"%r#{place}" for place in range(len(results)))} : {found}"""
    source = sourcerize(program("; ".join(operands), found, body))
    assert "bits" in source.proofs
    assert "ffi" not in source


@pytest.mark.parametrize("captures", [True, False])
def test_a_map_is_its_function_of_arrays(captures):
    constant = "%c = stablehlo.constant dense<2.0> : tensor<f32>"
    outside, inside = (constant, "") if captures else ("", constant)
    body = f"""{outside}
    %r = "stablehlo.map"(%0, %1) <{{dimensions = array<i64: 0, 1>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        {inside}
        %d = stablehlo.multiply %a, %c : tensor<f32>
        %e = stablehlo.add %d, %b : tensor<f32>
        stablehlo.return %e : tensor<f32>
    }}) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    return %r : tensor<4x3xf32>"""
    kind = "tensor<4x3xf32>"
    source = sourcerize(program(f"{kind}; {kind}", kind, body), style="pretty")
    assert "return x * " in source
    assert "bits" in source.proofs


SCATTER = """%r:2 = "stablehlo.scatter"(%0, %1, %2, %3, %4) <{{
      scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
        %e = stablehlo.add {first} : tensor<f32>
        %f = stablehlo.maximum %b, %d : tensor<f32>
        stablehlo.return %e, %f : tensor<f32>, tensor<f32>
    }}) : (tensor<6xf32>, tensor<6xf32>, tensor<2x1xi32>, tensor<2xf32>, tensor<2xf32>)
      -> (tensor<6xf32>, tensor<6xf32>)
    return %r#0, %r#1 : tensor<6xf32>, tensor<6xf32>"""
SCATTERED = "tensor<6xf32>; tensor<6xf32>; tensor<2x1xi32>; tensor<2xf32>; tensor<2xf32>"


def test_a_scatter_of_several_operands_is_one_of_each():
    body = SCATTER.format(first="%c, %a")
    source = sourcerize(program(SCATTERED, "tensor<6xf32>, tensor<6xf32>", body))
    assert "bits" in source.proofs
    assert source.count("lax.scatter_add(") == source.count("lax.scatter_max(") == 1


def test_a_scatter_whose_updates_depend_on_several_operands_is_refused():
    body = SCATTER.format(first="%a, %b")
    with pytest.raises(UnreadableProgram, match=r"cannot read stablehlo\.scatter"):
        sourcerize(program(SCATTERED, "tensor<6xf32>, tensor<6xf32>", body))


TRANSFERS = f"""
%r:2 = "stablehlo.infeed"(%1) <{{infeed_config = "a", layout = [[0]]}}>
  : ({TOKEN}) -> (tensor<6xf32>, {TOKEN})
%s = stablehlo.add %0, %r#0 : tensor<6xf32>
%t = "stablehlo.send"(%s, %r#1) <{{channel_handle = #stablehlo.channel_handle<handle = 5,
  type = 2>, is_host_transfer = true}}> : (tensor<6xf32>, {TOKEN}) -> {TOKEN}
%u = stablehlo.after_all %t, %1 : {TOKEN}
%v:2 = "stablehlo.recv"(%u) <{{channel_handle = #stablehlo.channel_handle<handle = 6,
  type = 3>, is_host_transfer = true}}> : ({TOKEN}) -> (tensor<6xf32>, {TOKEN})
return %v#1, %v#0 : {TOKEN}, tensor<6xf32>"""


def test_transfers_are_foreign_functions_with_their_attributes():
    source = sourcerize(
        program(f"tensor<6xf32>; {TOKEN}", f"{TOKEN}, tensor<6xf32>", TRANSFERS), style="pretty"
    )
    assert source.proofs == ("jaxpr", "stablehlo")
    names = ("infeed", "send", "recv")
    places = [source.index(f'"stablehlo.{name}"') for name in names]
    assert places == sorted(places)
    assert 'infeed_config="a"' in source
    assert "#stablehlo.channel_handle<handle = 5, type = 2>" in source
    assert "def main(x):" in source


def test_a_loop_that_carries_a_token_keeps_its_effect():
    body = f"""%t = stablehlo.create_token : {TOKEN}
    %n = stablehlo.constant dense<3> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %r:3 = stablehlo.while(%i = %z, %y = %0, %u = %t) : tensor<i32>, tensor<6xf32>, {TOKEN}
      cond {{ %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1> }}
      do {{ %one = stablehlo.constant dense<1> : tensor<i32>
        %k = stablehlo.add %i, %one : tensor<i32>
        %v = "stablehlo.outfeed"(%y, %u) <{{outfeed_config = "b"}}>
          : (tensor<6xf32>, {TOKEN}) -> {TOKEN}
        %s = stablehlo.sine %y : tensor<6xf32>
        stablehlo.return %k, %s, %v : tensor<i32>, tensor<6xf32>, {TOKEN} }}
    return %r#1 : tensor<6xf32>"""
    source = sourcerize(program("tensor<6xf32>", "tensor<6xf32>", body))
    assert source.proofs == ("jaxpr", "stablehlo")
    assert source.index("def body") < source.index("stablehlo.outfeed")


def test_tokens_without_effects_are_not_written():
    body = f"""%t = stablehlo.create_token : {TOKEN}
    %u = stablehlo.after_all %t, %t : {TOKEN}
    return %0 : tensor<2xf32>"""
    source = sourcerize(program("tensor<2xf32>", "tensor<2xf32>", body))
    assert {"stablehlo", "bits"} <= {*source.proofs}
    assert "return x" in source


def test_operations_of_constant_shapes_have_these_shapes():
    body = """%s = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
    %r = stablehlo.dynamic_reshape %0, %s : (tensor<6xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    %i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<2xi32>) -> tensor<2x3xf32>
    %z = stablehlo.add %i, %r : tensor<2x3xf32>
    return %z : tensor<2x3xf32>"""
    source = sourcerize(program("tensor<6xf32>", "tensor<2x3xf32>", body), style="pretty")
    assert {"stablehlo", "bits"} <= {*source.proofs}


def test_quantized_elements_are_the_integers_that_store_them():
    kind = "!quant.uniform<i8:f32, 0.5:10>"
    body = f"""%q = stablehlo.uniform_quantize %0 : (tensor<6xf32>) -> tensor<6x{kind}>
    %r = stablehlo.add %q, %q : tensor<6x{kind}>
    %z = stablehlo.uniform_dequantize %r : (tensor<6x{kind}>) -> tensor<6xf32>
    return %z : tensor<6xf32>"""
    source = sourcerize(program("tensor<6xf32>", "tensor<6xf32>", body))
    assert "bits" in source.proofs
    assert "-128" in source
    assert "0.5" in source
