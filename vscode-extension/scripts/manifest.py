"""Write the version and the settings of `package.json` from the server's.

Usage: `python scripts/manifest.py [--check]`.

The schema (`jaxsight.settings`) declares the settings of the server; `OWN` adds those of the
extension.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

EXTENSION = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(EXTENSION.parent / "server"))

from jaxsight import __version__
from jaxsight.settings.documentation import schema_json

RESTRICTED = (
    "compiler.remotePython",
    "platform",
    "python",
    "serverPython",
    "target",
    "targets",
)
"""Settings that choose what code runs, or where; untrusted workspaces cannot set them."""

OWN: dict[str, Any] = {
    "jaxsight.kernelColours": {
        "type": "boolean",
        "default": False,
        "markdownDescription": "Mark the lines of the function at the cursor with the colours of "
        "their kernels, next to the line numbers. "
        "Toggle it with *jaxsight: Toggle Kernel Colours*.",
        "scope": "resource",
    },
    "jaxsight.serverPython": {
        "type": "string",
        "default": "",
        "markdownDescription": "Python interpreter (3.11 or newer) that runs the language server; "
        "it needs no packages. "
        "When empty, the interpreter of the first workspace folder, else the first Python on "
        "`PATH`. "
        "To choose the interpreter that traces your functions, set `#jaxsight.python#`.",
        "scope": "machine-overridable",
    },
}


def manifest(text: str) -> str:
    """Return the manifest with the version of the server and the settings of the schema."""
    package = json.loads(text)
    package["version"] = __version__
    configuration = schema_json()
    configuration["properties"] = dict(sorted({**configuration["properties"], **OWN}.items()))
    package["contributes"]["configuration"] = configuration
    restricted = [f"jaxsight.{key}" for key in RESTRICTED]
    assert configuration["properties"].keys() >= set(restricted)
    package["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = restricted
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the file; with `--check` fail if it is stale."""
    file = EXTENSION / "package.json"
    old = file.read_text(encoding="utf-8")
    new = manifest(old)
    if "--check" in sys.argv and old != new:
        sys.exit("vscode-extension/package.json is stale: run vscode-extension/scripts/manifest.py")
    file.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
