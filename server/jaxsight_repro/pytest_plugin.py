"""The option `--jaxsight-repro` of pytest, where jaxsight is installed beside the tests.

`pytest --jaxsight-repro[=FOLDER]` writes a repro for each failing test that reached JAX.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

DEFAULT_FOLDER = "jaxsight-repros"


def pytest_addoption(parser: Any) -> None:
    """Add the option."""
    parser.addoption(
        "--jaxsight-repro",
        nargs="?",
        const=DEFAULT_FOLDER,
        metavar="FOLDER",
        help="write a repro for each failing test that reached JAX",
    )


def pytest_configure(config: Any) -> None:
    """Capture tests if the option is there."""
    folder = config.getoption("--jaxsight-repro")
    if folder:
        from jaxsight_repro.capturing.pytest_plugin import WritingPlugin

        plugin = WritingPlugin(Path(folder).absolute())
        config.pluginmanager.register(plugin, "jaxsight-repro-cases")
