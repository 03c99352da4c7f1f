"""The extension's manifest says what the server's schema says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

EXTENSION = Path(__file__).parents[2] / "vscode-extension"


def test_settings_in_the_manifest_are_those_of_the_schema() -> None:
    script = EXTENSION / "scripts" / "manifest.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_the_manifest_names_is_there() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    contributed = manifest["contributes"]
    files = [
        manifest["icon"],
        *(each["path"] for each in contributed["grammars"]),
        *(each["path"] for each in contributed["snippets"]),
        *(each["configuration"] for each in contributed["languages"]),
        *(step["media"]["markdown"] for step in contributed["walkthroughs"][0]["steps"]),
    ]
    assert [file for file in files if not (EXTENSION / file).is_file()] == []
