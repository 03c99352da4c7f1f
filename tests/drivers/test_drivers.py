"""Functions that libraries call back are shown with what a real run calls them with."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.session import Session
from tests.drivers.checking import check
from tests.drivers.observed import cases

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


KINDS = ("jax", "diffrax", "optimistix", "numpyro", "optax")
HAIKU = ("haiku_transform", "haiku_transform_with_state", "haiku_multi_transform", "haiku_scan")


@pytest.mark.parametrize(("kind", "name"), cases(*KINDS, *HAIKU))
async def test_functions_are_shown_as_drivers_call_them(
    kind: str, name: str, project: tuple[Session, Path]
) -> None:
    await check(kind, name, project)
