"""The option `--update-programs` of pytest, where jaxsight is installed beside the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--update-programs",
        action="store_true",
        help="write what `jaxsight.assert_program` compares with",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Update programs if the option is there."""
    if config.getoption("--update-programs"):
        import pytest

        from jaxsight.library import snapshots

        if hasattr(config, "workerinput"):  # of pytest-xdist: processes would overwrite each other
            raise pytest.UsageError("--update-programs needs one process: run pytest with -n 0")
        snapshots.UPDATES.update(on=True)
