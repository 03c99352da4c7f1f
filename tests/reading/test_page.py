"""The page *Reading what JAX makes* shows what the JAX that it names makes of the examples."""

from __future__ import annotations

import sys

import jax
import pytest

from tools.reading.making import PAGE, page

SHOWN = PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.skipif(
    f"JAX {jax.__version__} (" not in SHOWN, reason="the page is made with another JAX"
)
@pytest.mark.asyncio
async def test_the_page_is_what_the_installed_jax_makes() -> None:
    assert await page() == SHOWN, "python -m tools.reading --write"
