"""Another machine gets all modules of ours that a compiler imports there."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from pathlib import Path

from jaxsight.workers.compilation import remote

SERVER = Path(__file__).parents[2] / "server"
HERE_ONLY = "jaxsight.compiler.start"
IMPORT_ALL = """
import importlib.abc, importlib.util, json, sys
sys.path = [folder for folder in sys.path if folder != SERVER]
modules = json.loads(sys.stdin.read())
FINDER
for name in modules:
    if name.startswith(("jaxsight.compiler", "jaxsight.measuring")):
        importlib.import_module(name)
"""


def test_what_is_sent_imports_nothing_else_of_ours() -> None:
    sent = json.loads(zlib.decompress(remote.modules()[4:]))
    del sent[HERE_ONLY]
    _, begin, rest = remote._START.partition("class Sent")
    finder = begin + rest.partition("os.environ")[0]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            IMPORT_ALL.replace("SERVER", repr(str(SERVER))).replace("FINDER", finder),
        ],
        input=json.dumps(sent),
        env={"PYTHONPATH": str(SERVER), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
