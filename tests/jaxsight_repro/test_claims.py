"""What the user's own code raises about an array leads to the execution that made it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.jaxsight_repro.programs import extract

PROGRAM = """\
import jax
import jax.numpy as jnp

LIMIT = 3.0


class Diverged(Exception):
    pass


@jax.jit
def step(x):
    return jnp.log(x - 1.0), x * 2


x = jnp.arange(3.0) + 1.5
for _ in range(3):
    y, x = step(x)
    x = x - LIMIT
state = {"x": x, "y": y}
CLAIM
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "headline", "line"),
    [
        ("assert not jnp.isnan(y).any()", "AssertionError", "if jnp.isnan(claimed).any():"),
        (
            "if bool(jnp.isnan(state['y']).any()):\n    raise ValueError('NaN in step')",
            "ValueError: NaN in step",
            "if bool(jnp.isnan(claimed).any()):",
        ),
        (
            "if not (y < LIMIT).all():\n    raise Diverged(f'above {LIMIT}')",
            "Diverged: above 3.0",
            "LIMIT = 3.0",
        ),
    ],
)
def test_a_claim_about_a_result_leaves_what_computed_it(
    tmp_path: Path, claim: str, headline: str, line: str
) -> None:
    done = extract(tmp_path, PROGRAM.replace("CLAIM", claim))
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout == f"repro.py: {headline}\n"
    assert "jnp.log(x - 1.0)" in done.repro
    assert line in done.repro
    ran = subprocess.run(
        [sys.executable, tmp_path / "repro.py"], capture_output=True, text=True, check=False
    )
    assert ran.stderr.strip().endswith(headline)


def test_a_claim_about_something_else_has_no_repro(tmp_path: Path) -> None:
    done = extract(tmp_path, PROGRAM.replace("CLAIM", "assert state is None"))
    assert done.code == 2
    assert "the exception was raised outside of JAX" in done.stderr
