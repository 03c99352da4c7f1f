"""The order of the start: what the server imports before it starts a tracer."""

from __future__ import annotations

import subprocess
import sys

_IMPORTED = """
import sys
from jaxsight.lsp.server import Configuration, EarlyEngine
EarlyEngine(Configuration({}))
print(*sys.modules)
"""


def test_tracers_start_before_rules_features_and_the_protocol_are_imported() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", _IMPORTED], capture_output=True, text=True, check=True
    ).stdout
    imported = printed.split()
    late = ("jaxsight.rules.jx", "jaxsight.features", "jaxsight.queries", "lsprotocol", "pygls")
    assert "jaxsight.projects.projects" in imported
    assert [name for name in imported if name.startswith(late)] == []
