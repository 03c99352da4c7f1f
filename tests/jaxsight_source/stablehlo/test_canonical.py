"""Modules of the same computation have the same canonical text, others have not."""

from __future__ import annotations

import pytest

from jaxsight_source.stablehlo.canonical import canonical

MODULE = """
module @jit_f {{
  func.func public @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {{
    {body}
  }}
  func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {{
    %0 = stablehlo.add %x, %x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }}
  func.func private @again(%x: tensor<2xf32>) -> tensor<2xf32> {{
    %0 = stablehlo.add %x, %x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }}
  func.func private @squared(%x: tensor<2xf32>) -> tensor<2xf32> {{
    %0 = stablehlo.multiply %x, %x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }}
}}
"""

BODY = """
%c = stablehlo.constant dense<2.0> : tensor<2xf32>
%0 = stablehlo.subtract %x, %y : tensor<2xf32>
%1 = stablehlo.multiply %0, %c : tensor<2xf32>
%2 = call @twice(%1) : (tensor<2xf32>) -> tensor<2xf32>
return %2 : tensor<2xf32>
"""


def text(body: str) -> str:
    return canonical(MODULE.format(body=body))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("call @twice", "call @again"),
        ("%0 = stablehlo.sub", "%dead = stablehlo.add %x, %y : tensor<2xf32>\n%0 = stablehlo.sub"),
        (
            "return %2",
            "%3 = stablehlo.convert %2 : (tensor<2xf32>) -> tensor<2xf32>\nreturn %3",
        ),
        ("%0, %c", "%0, %d"),
    ],
)
def test_the_same_computation(old: str, new: str):
    changed = BODY.replace(old, new)
    if "%d :" in changed:
        constant = "%c = stablehlo.constant dense<2.0> : tensor<2xf32>\n"
        changed = changed.replace("%1 =", constant.replace("%c", "%d") + "%1 =")
    assert changed != BODY
    assert text(changed) == text(BODY)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dense<2.0>", "dense<3.0>"),
        ("dense<2.0>", "dense<[2.0, 2.5]>"),
        ("subtract %x, %y", "subtract %y, %x"),
        ("subtract", "add"),
        ("call @twice", "call @squared"),
        ("%0, %c", "%0, %0"),
        ("return %2", "return %1"),
    ],
)
def test_another_computation(old: str, new: str):
    changed = BODY.replace(old, new)
    assert changed != BODY
    assert text(changed) != text(BODY)
