"""Messages of findings are short clauses, as the rules' cases and the fixtures show them."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from typing import NamedTuple

from tools.lint.checkout import PACKAGE, Checkout, Offender, line_at

LONGEST = 100
"""Characters: what an editor shows in one line of its list of problems."""
MEDIAN = 70
MOST = 95
"""Characters of 19 messages of 20."""
_MARK = re.compile(r"^ *#? *\^+ (?P<code>JX\d+)(?: \(\w+\))? (?P<message>.*)$", re.MULTILINE)
_QUOTES_JAX = frozenset({"JX400"})
"""Rules whose message is the exception's own."""
_FILES = (f"{PACKAGE}/rules/*/cases.md", "tests/fixtures/*/*.py")


class Message(NamedTuple):
    """A message of a finding."""

    path: str
    line: int
    text: str


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield messages that are long or sentences, and the lengths of all if they are."""
    found = list(messages(checkout))
    for path, line, text in found:
        if len(text) > LONGEST:
            yield Offender(path, line, f"message of {len(text)} characters, more than {LONGEST}")
        if text.endswith("."):
            yield Offender(path, line, "message ends with a full stop")
    lengths = sorted({len(text) for _, _, text in found})
    if lengths and statistics.median(lengths) > MEDIAN:
        message = f"messages have {statistics.median(lengths)} characters in the median"
        yield Offender(f"{PACKAGE}/rules", 1, f"{message}, more than {MEDIAN}")
    if lengths and lengths[int(0.95 * (len(lengths) - 1))] > MOST:
        message = f"more than one message of 20 has more than {MOST} characters"
        yield Offender(f"{PACKAGE}/rules", 1, message)


def messages(checkout: Checkout) -> Iterator[Message]:
    """Yield the messages in the rules' cases and in the fixtures."""
    for path in [path for pattern in _FILES for path in checkout.files(pattern)]:
        text = checkout.text(path)
        for mark in _MARK.finditer(text):
            if mark["code"] not in _QUOTES_JAX:
                yield Message(path, line_at(text, mark.start()), mark["message"])
