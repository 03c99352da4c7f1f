"""Functions of optax, equinox, flax, diffrax, lineax, optimistix, numpyro and jaxtyping's users pass the gate in both styles: the same program,
the same bits, the same gradients, with 64-bit types off and on."""

from __future__ import annotations

import pytest

from tests.sourcerizer import gate
from tests.sourcerizer.libraries import FUNCTIONS, GAPS, Time

CASES = [
    pytest.param(
        name,
        style,
        x64,
        id=f"{name}-{style}-x64-{'on' if x64 else 'off'}",
        marks=[]
        if function.time is Time.LITTLE and style == "pretty" and not x64
        else pytest.mark.slow,
    )
    for name, function in FUNCTIONS.items()
    if name not in GAPS
    for style in ("lax", "pretty")
    for x64 in (False, True)
    if function.time is not Time.LONG or (style == "pretty" and not x64)
]


# What libraries warn of is theirs.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "style", "x64"), CASES)
def test_function_of_a_library(name, style, x64):
    function = FUNCTIONS[name]
    with gate.x64(x64):
        passed = gate.check(function.make(), imports=function.imports, style=style)
    assert passed.equations
