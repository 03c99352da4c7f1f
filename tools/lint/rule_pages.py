"""Each page of a rule has its title, its sections and two examples, and the table has each rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jaxsight.rules import RULES, documentation
from jaxsight.rules.rule import Rule
from tools.lint.checkout import PACKAGE, Checkout, Offender

SECTIONS = ["## Why", "## Example", "## Fix", "## When to ignore it"]
WITHOUT_EXAMPLES = frozenset({"JX430"})
"""Rules of what takes long (`tests/features/test_slow_compiles.py`)."""
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield pages without a part, and rules without a row."""
    yield from of_rules(checkout, RULES.values(), documentation.table())


def of_rules(checkout: Checkout, known: Iterable[Rule], table: str) -> Iterator[Offender]:
    """Yield what the pages of some rules, and the table of all, lack."""
    for rule in known:
        path = f"{PACKAGE}/rules/{rule.folder}/page.md"
        if not checkout.exists(path):
            yield Offender(path, 1, f"{rule.code} has no page")
            continue
        text = checkout.text(path)
        title = f"# {rule.name} ({rule.code})"
        if not text.startswith(f"{title}\n"):
            yield Offender(path, 1, f"the title is not `{title}`")
        if [line for line in text.splitlines() if line.startswith("## ")] != SECTIONS:
            yield Offender(path, 1, f"the sections are not {', '.join(SECTIONS)}")
        finds = (rule.in_module, rule.in_program, rule.in_kernels, rule.explain)
        examples = len(_PYTHON.findall(text))
        if any(finds) and rule.code not in WITHOUT_EXAMPLES and examples != 2:
            message = f"{examples} examples in Python: one that is found, and one that is not"
            yield Offender(path, 1, message)
        if f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.summary} |" not in table:
            yield Offender(path, 1, f"the table of rules has no row for {rule.code}")
