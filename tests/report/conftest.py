"""A report in a browser: in the environment that has Playwright, as VS Code's tests."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

if find_spec("playwright") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    from playwright.sync_api import Browser

    from tests.vscode.window import chromium

    @pytest.fixture(scope="session")
    def browser() -> Iterator[Browser]:
        """Chromium without a screen."""
        with chromium() as browser:
            yield browser
