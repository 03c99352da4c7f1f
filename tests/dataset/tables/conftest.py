"""Tables of made-up rows, and a dataset of a few generated ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.published import hold

SERVER = Path(__file__).parents[3] / "server"

collect_ignore_glob = [] if find_spec("pyarrow") else ["test_*.py"]

SPEC = """\
samples = 12
shard_size = 6
seed = 3
categories = ["arithmetic", "reductions", "array"]
"""


def jaxsight(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command in `cwd`."""
    return hold(
        subprocess.run(
            [sys.executable, "-m", "jaxsight", *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(SERVER), "COLUMNS": "120", **environ},
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=900,
        )
    )


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
