"""The files that the extension's manifest names are there."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tools.lint.checkout import Checkout, Offender

EXTENSION = "vscode-extension"
MANIFEST = f"{EXTENSION}/package.json"


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield each file that is missing."""
    manifest = json.loads(checkout.text(MANIFEST))
    contributed = manifest["contributes"]
    for name in [
        manifest["icon"],
        *(each["path"] for each in contributed["grammars"]),
        *(each["path"] for each in contributed["snippets"]),
        *(each["configuration"] for each in contributed["languages"]),
        *(step["media"]["markdown"] for step in contributed["walkthroughs"][0]["steps"]),
    ]:
        if not checkout.exists(f"{EXTENSION}/{name}"):
            yield Offender(MANIFEST, 1, f"`{name}` is not there")
