"""What an editor may show names no command: its copy of the server has no terminal.

`jaxsight.text.terminal` writes commands, and what to do where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.lint.checkout import Checkout, Offender, inside, line_at
from tools.lint.words import strings

LEFT_OUT = ("cli/", "jaxsight_dataset/", "jaxsight_repro/cli/")
"""What the extension for VS Code does not have (`vscode-extension/scripts/bundle.py`)."""
OF_TERMINALS = {
    "library/": "runs in the user's own process, which has the whole package",
    "locks/notation.py": "the head of a file that only a terminal writes",
    "text/terminal.py": "this is what writes commands",
}
SETTINGS = "vscode-extension/package.json"
_COMMAND = re.compile(r"`jaxsight [a-z…]")


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield the commands in texts of the server that editors start, and in their settings."""
    for module in checkout.modules:
        if not inside(module.path).startswith((*LEFT_OUT, *OF_TERMINALS)):
            for line, text in strings(module):
                if _COMMAND.search(text):
                    message = "names a command; write it with `jaxsight.text.terminal`"
                    yield Offender(module.path, line, message)
    if checkout.exists(SETTINGS):
        text = checkout.text(SETTINGS)
        for command in _COMMAND.finditer(text):
            yield Offender(SETTINGS, line_at(text, command.start()), "a setting names a command")
