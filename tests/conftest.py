"""Options and settings that all tests share."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

# What is compiled is kept apart from what the person who runs the tests has compiled; compilers are those that `make` installed.
os.environ.setdefault("JAXSIGHT_COMPILERS", str(Path(__file__).parents[1] / ".venvs" / "compilers"))
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="jaxsight-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-fixtures",
        action="store_true",
        help="write what is shown now into tests/fixtures instead of comparing",
    )


@pytest.fixture
def update_fixtures(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-fixtures"))
