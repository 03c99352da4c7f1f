"""Log densities and steps are shown with what BlackJAX' kernels call them with in a real run."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.session import Session
from tests.drivers.checking import check
from tests.drivers.observed import programs

pytest.importorskip("blackjax")

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


@pytest.mark.parametrize("name", programs("blackjax"))
async def test_functions_are_shown_as_kernels_call_them(
    name: str, project: tuple[Session, Path]
) -> None:
    await check("blackjax", name, project)
