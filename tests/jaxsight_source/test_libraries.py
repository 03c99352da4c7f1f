"""Functions of optax, equinox, flax, diffrax, lineax, optimistix, numpyro and jaxtyping's users
pass the gate: the same program, the same bits, the same gradients.

Each is held in one of the four settings of style and 64-bit types, which its name draws.
`--every-setting` holds all four.
"""

from __future__ import annotations

import zlib

import pytest

from tests.corpora.jaxsight_source.libraries import FUNCTIONS, Time
from tests.jaxsight_source import gate
from tests.searches import part

SETTINGS = [("pretty", False), ("lax", False), ("pretty", True), ("lax", True)]


def settings_of(name: str, every: bool) -> list[tuple[str, bool]]:
    """Return the styles and whether 64-bit types are on, in which a function is held."""
    if FUNCTIONS[name].time is Time.LONG:
        return SETTINGS[:1]
    return SETTINGS if every else [SETTINGS[zlib.crc32(name.encode()) % len(SETTINGS)]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = metafunc.config.getoption("--every-setting")
    metafunc.parametrize(
        ("name", "style", "x64"),
        part(
            [
                pytest.param(
                    name,
                    style,
                    x64,
                    id=f"{name}-{style}-x64-{'on' if x64 else 'off'}",
                    marks=[] if function.time is Time.LITTLE else pytest.mark.slow,
                )
                for name, function in FUNCTIONS.items()
                for style, x64 in settings_of(name, every)
            ]
        ),
    )


# What libraries warn of is theirs.
@pytest.mark.search
@pytest.mark.filterwarnings("ignore")
def test_function_of_a_library(name, style, x64):
    function = FUNCTIONS[name]
    with gate.x64(x64):
        passed = gate.check(function.make(), imports=function.imports, style=style)
    assert passed.equations
