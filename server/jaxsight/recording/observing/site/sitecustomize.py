"""Observe a Python process: Python imports this before the user's program, by its name.

It finds it because this folder is on `PYTHONPATH`. A `sitecustomize` of the user's own, which this
one hides, is run afterwards.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path


def _start() -> None:
    jaxsight = Path(__file__).resolve().parents[3]
    # What is importable is decided there, as for processes that the server starts.
    spec = importlib.util.spec_from_file_location("jaxsight_boot", jaxsight / "boot.py")
    if spec is None or spec.loader is None:
        return
    boot = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(boot)
    boot.make_importable(jaxsight.parent, *boot.PACKAGES)
    from jaxsight.recording.observing.start import start

    start()


def _run_own() -> None:
    """Run the `sitecustomize` that is next on the path."""
    here = str(Path(__file__).parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


with contextlib.suppress(Exception):  # then the program runs without being observed
    _start()
_run_own()
