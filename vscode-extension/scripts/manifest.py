"""Writes the settings of `package.json` from the server's schema: `python scripts/manifest.py` (or `--check`).

The schema has every setting once (`jaxsight.engine.settings`); what is the extension's alone is here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

EXTENSION = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(EXTENSION.parent / "server"))

from jaxsight.engine.settings.documentation import schema_json

RESTRICTED = (
    "compiler.remotePython",
    "platform",
    "python",
    "serverPython",
    "target",
    "targets",
)
"""Settings that say what runs, or where: values of a workspace that is not trusted do not count."""

OWN: dict[str, Any] = {
    "jaxsight.kernelColours": {
        "type": "boolean",
        "default": False,
        "markdownDescription": "Colour, beside the line numbers, the lines of the function at the cursor by the kernels that they became part of. "
        "*jaxsight: Toggle Kernel Colours* switches it.",
        "scope": "resource",
    },
    "jaxsight.serverPython": {
        "type": "string",
        "default": "",
        "markdownDescription": "The Python, 3.11 or newer, that runs jaxsight's server; it needs no packages. When empty, the interpreter "
        "of the first folder is taken, else the first Python on `PATH`. (The one that traces is `#jaxsight.python#`.)",
        "scope": "machine-overridable",
    },
}


def manifest(text: str) -> str:
    """The manifest with the settings that the schema has now."""
    package = json.loads(text)
    configuration = schema_json()
    configuration["properties"] = dict(sorted({**configuration["properties"], **OWN}.items()))
    package["contributes"]["configuration"] = configuration
    restricted = [f"jaxsight.{key}" for key in RESTRICTED]
    assert configuration["properties"].keys() >= set(restricted)
    package["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = restricted
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the file, or with `--check` only tell whether it is current."""
    file = EXTENSION / "package.json"
    old = file.read_text(encoding="utf-8")
    new = manifest(old)
    if "--check" in sys.argv and old != new:
        sys.exit(
            "vscode-extension/package.json is not current: run vscode-extension/scripts/manifest.py"
        )
    file.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
