"""Tables of made-up rows, and a dataset of a few generated ones."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import terminal

SERVER = terminal.SERVER

collect_ignore_glob = [] if find_spec("pyarrow") else ["test_*.py"]

SPEC = """\
samples = 12
shard_size = 6
seed = 3
categories = ["arithmetic", "reductions", "array"]
"""


def jaxsight(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command in `cwd`."""
    return terminal.jaxsight(*arguments, cwd=cwd, **{"COLUMNS": "120", **environ})


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the dataset `pairs`, made by the command, and what it printed as `made.json`."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "small.toml").write_text(SPEC)
    done = jaxsight(
        *("dataset", "generate", "pairs", "--spec", "small.toml", "--jobs", "1"),
        *("--python", sys.executable, "--json"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    (folder / "made.json").write_text(json.dumps(json.loads(done.stdout)))
    return folder
