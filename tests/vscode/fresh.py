"""What a new user sees first: the packaged extension alone, in a VS Code with an empty profile, with
a Python that has JAX. `make release-check` runs it.

    CHROMIUM=… .venvs/vscode/bin/python -m tests.vscode.fresh PYTHON
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.vscode.code_server import code_server
from tests.vscode.project import FUSION, make
from tests.vscode.window import chromium, window


def main(python: str) -> None:
    """Open a file, wait for its kernels, and print how long that took."""
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch, "project")
        settings = '[tool.jaxsight]\ntarget = "cpu"\n'
        make(project, {"fusion.py": FUSION}, python=python, settings=settings)
        with code_server(Path(scratch)) as server, chromium() as browser:
            began = time.monotonic()
            with window(browser, server.port, project, project / "fusion.py") as opened:
                opened.sees("def f_sum_jax(x):▣ 2 kernels", "⊣ reduction")
                seconds = time.monotonic() - began
    print(f"VS Code with an empty profile: kernels {seconds:.1f} s after the window was asked for")


if __name__ == "__main__":
    main(sys.argv[1])
