"""Fixtures of the end-to-end tests: editors with a server each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_lsp

from tests.e2e.editor import RECORDED, SERVER, SHIPPED, VSCODE, Editor, configuration


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the editors of a module show."""
    return tmp_path_factory.mktemp("project").resolve()


@pytest_lsp.fixture(
    config=configuration(SERVER),
    scope="module",
    params=[
        *sorted(RECORDED),
        *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(SHIPPED)),
    ],
)
async def editor(
    client: Editor, request: pytest.FixtureRequest, project: Path
) -> AsyncIterator[None]:
    """Each editor."""
    await client.introduce(request.param, project)
    yield
    await client.shutdown_session()


@pytest_lsp.fixture(config=configuration(SERVER), scope="module")
async def vscode(client: Editor, project: Path) -> AsyncIterator[None]:
    """The editor that can show all that there is."""
    await client.introduce(VSCODE, project)
    yield
    await client.shutdown_session()
