"""Cases beside a rule: programs that it reports, programs that it does not, and fixes.

`cases.md` in a rule's folder has up to three parts, each with blocks of Python:

* *Found*: every finding of the rule is written under its line, as `tests/features/rendering.py`
  draws them;
* *Not found*: near misses, which the rule must not report;
* *Fixed*: after each block a block of `diff`, whose first line is `# ` and the title of the fix.

`The target is `cpu`.` in the introduction chooses another target than an H100,
`The findings are those of JAX 0.12.` the one JAX that the cases are run on.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxsight import rules
from jaxsight.rules.rule import Rule

FOUND, NOT_FOUND, FIXED = "Found", "Not found", "Fixed"
PARTS = (FOUND, NOT_FOUND, FIXED)

_PART = re.compile(r"^## (.*)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(python|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"The target is `([^`]+)`\.")
_RELEASE = re.compile(r"The findings are those of JAX (\d+)\.(\d+)\.")


@dataclass(frozen=True)
class Block:
    """A program, or the difference that a fix makes to the program before it."""

    part: str
    language: str
    text: str
    start: int
    """Where `text` begins in the file."""


@dataclass(frozen=True)
class Cases:
    """The cases of one rule."""

    file: Path
    text: str
    target: str
    release: tuple[int, int] | None

    def blocks(self, part: str) -> list[Block]:
        """Return the blocks of one part, in order."""
        return [block for block in self._all() if block.part == part]

    def _all(self) -> Iterator[Block]:
        heads = list(_PART.finditer(self.text))
        for block in _BLOCK.finditer(self.text):
            part = [head[1] for head in heads if head.start() < block.start()]
            yield Block(part[-1] if part else "", block[1], block[2], block.start(2))

    def parts(self) -> list[str]:
        """Return the headings of the parts."""
        return [head[1] for head in _PART.finditer(self.text)]


def file_of(rule: Rule) -> Path:
    """Return the file of a rule's cases, which may be missing."""
    return rules.file_of(rule).with_name("cases.md")


def cases_of(rule: Rule) -> Cases:
    """Read the cases of a rule."""
    file = file_of(rule)
    text = file.read_text(encoding="utf-8")
    introduction = text.partition("\n## ")[0]
    target, release = _TARGET.search(introduction), _RELEASE.search(introduction)
    return Cases(
        file,
        text,
        target[1] if target else "cuda:h100",
        (int(release[1]), int(release[2])) if release else None,
    )


def replaced(text: str, blocks: list[tuple[Block, str]]) -> str:
    """Return the text of a file with other texts in some of its blocks."""
    for block, new in sorted(blocks, key=lambda pair: pair[0].start, reverse=True):
        text = text[: block.start] + new + text[block.start + len(block.text) :]
    return text


def difference(title: str, before: str, after: str) -> str:
    """Return the block of a fix: its title, and the changed lines with one line around them."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    hunks = [line for line in list(lines)[2:] if not line.startswith("@@")]
    return "\n".join((f"# {title}", *(line.rstrip() for line in hunks))) + "\n"
