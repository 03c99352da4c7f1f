"""Fixtures of the protocol's tests: a server around the fake engine, for one recorded client or
another.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.lsp.client import Client, Ready, connected
from tests.lsp.fake_session import FakeSession


@pytest.fixture
async def session() -> FakeSession:
    return FakeSession()


@pytest.fixture
async def client(session: FakeSession) -> AsyncIterator[Client]:
    """Connected, not yet introduced."""
    async with connected(Ready(session)) as client:
        yield client
