"""Tokens, which order effects, are not written; the effects keep their order."""

from __future__ import annotations

from jaxsight_source.api import sourcerize

TOKEN = "!stablehlo.token"


def program(argument: str, result: str, body: str) -> bytes:
    """Return a module of one function of `%0`."""
    return f"func.func @main(%0: {argument}) -> ({result}) {{\n{body}\n}}".encode()


def test_a_loop_that_carries_a_token_keeps_its_effect():
    body = f"""%t = stablehlo.create_token : {TOKEN}
    %n = stablehlo.constant dense<3> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %r:3 = stablehlo.while(%i = %z, %y = %0, %u = %t) : tensor<i32>, tensor<6xf32>, {TOKEN}
      cond {{ %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1> }}
      do {{ %one = stablehlo.constant dense<1> : tensor<i32>
        %k = stablehlo.add %i, %one : tensor<i32>
        %v = stablehlo.custom_call @report(%y, %u) {{has_side_effect = true}}
          : (tensor<6xf32>, {TOKEN}) -> {TOKEN}
        %s = stablehlo.sine %y : tensor<6xf32>
        stablehlo.return %k, %s, %v : tensor<i32>, tensor<6xf32>, {TOKEN} }}
    return %r#1 : tensor<6xf32>"""
    source = sourcerize(program("tensor<6xf32>", "tensor<6xf32>", body))
    assert source.proofs == ("jaxpr", "stablehlo")
    assert source.index("def body") < source.index('"report"')


def test_tokens_without_effects_are_not_written():
    body = f"""%t = stablehlo.create_token : {TOKEN}
    %u = stablehlo.after_all %t, %t : {TOKEN}
    return %0 : tensor<2xf32>"""
    source = sourcerize(program("tensor<2xf32>", "tensor<2xf32>", body))
    assert {"stablehlo", "bits"} <= {*source.proofs}
    assert "return x" in source
