"""A session with a real tracer, shared by the tests of a module."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.session import Session
from tests.quiet import QUIET
from tests.sessions import session_without_spare


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def project(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Session, Path]]:
    """A session on an empty folder, and the folder; statements may take a minute."""
    root = tmp_path_factory.mktemp("project")
    session = session_without_spare()
    settings = {**QUIET, "python": sys.executable, "timeouts": {"statement": 60}}
    session.configure([str(root)], settings)
    yield session, root
    await session.aclose()
