"""What a server's process has loaded, which an import graph cannot show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SERVER = Path(__file__).parents[2] / "server"


def test_a_servers_process_loads_neither_jax_nor_numpy() -> None:
    code = (
        "import sys\n"
        "import jaxsight.cli.app, jaxsight.lsp.language_server, jaxsight.lsp.server\n"
        "print(sorted({'jax', 'jaxlib', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SERVER)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
