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
        from jaxsight_repro.capturing.pytest_plugin import Plugin

        plugin = Plugin(Path(folder).absolute())
        config.pluginmanager.register(plugin, "jaxsight-repro-cases")
        config.pluginmanager.register(_Writer(plugin.cases), "jaxsight-repro-writer")


class _Writer:
    """Writes the repros, at the end of the session."""

    def __init__(self, cases: list[tuple[str, Path]]) -> None:
        self._cases = cases

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write a repro for each case, and list the files."""
        from jaxsight_repro.context import emit_in_fresh_process

        if self._cases:
            terminalreporter.section("repros of failing tests")
        for test, folder in self._cases:
            line = emit_in_fresh_process(folder, folder.with_suffix(".py"))
            terminalreporter.write_line(f"{test}: {line}")
