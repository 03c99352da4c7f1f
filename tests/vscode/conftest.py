"""VS Code in a browser.

These tests run in an environment of their own, which has Playwright: `make test-all PART=vscode`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from importlib.util import find_spec

import pytest

if find_spec("playwright") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    from playwright.sync_api import Browser

    from tests.vscode.code_server import CodeServer, code_server
    from tests.vscode.window import Window, chromium

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        item: pytest.Function, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """What was on the screen when a test failed is kept in `reports/vscode/`."""
        report = yield
        if report.failed:
            for shown in item.funcargs.values():
                if isinstance(shown, Window):
                    shown.page.screenshot(path=f"reports/vscode/{item.name}.png")
        return report

    @pytest.fixture(scope="session")
    def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeServer]:
        """A VS Code that trusts its folders."""
        with code_server(tmp_path_factory.mktemp("vscode")) as running:
            yield running

    @pytest.fixture(scope="session")
    def browser() -> Iterator[Browser]:
        """Chromium without a screen."""
        with chromium() as browser:
            yield browser


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter with JAX that folders use."""
    return os.environ["JAXSIGHT_PYTHON"]


@pytest.fixture(scope="session")
def other_python() -> str:
    """Another one, with another JAX where there is one."""
    return os.environ.get("JAXSIGHT_OTHER_PYTHON") or os.environ["JAXSIGHT_PYTHON"]
