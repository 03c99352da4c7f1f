"""Each rule has cases with its words and near misses: its specification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from jaxsight.rules import RULES
from jaxsight.rules.rule import Rule
from tests.features.rendering import without_marks
from tests.rules.cases import FOUND, NOT_FOUND, PARTS, Block, Cases
from tools.lint.checkout import PACKAGE, Checkout, Offender, line_at

ELSEWHERE = {
    "JX430": "features/test_slow_compiles.py",  # its example compiles for half a minute
    "JX502": "cli/test_lock.py",  # compares with a file
    "JX900": "settings/test_settings.py",
    "JX909": "examples/test_problems.py",
    "JX912": "features/test_verification.py",  # needs an import in the background
    "JX913": "features/test_verification.py",
    "JX914": "features/test_large_texts.py",
}
"""Rules that one module of Python does not show: the tests that hold their cases."""


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield rules without cases, and cases without words or near misses."""
    yield from of_rules(checkout, RULES.values())


def of_rules(checkout: Checkout, known: Iterable[Rule]) -> Iterator[Offender]:
    """Yield what the cases of some rules lack."""
    for rule in known:
        path = f"{PACKAGE}/rules/{rule.folder}/cases.md"
        if rule.code in ELSEWHERE:
            tests = f"tests/{ELSEWHERE[rule.code]}"
            if checkout.exists(path):
                yield Offender(path, 1, f"the cases of {rule.code} are in `{tests}`")
            if not checkout.exists(tests) or rule.code not in checkout.text(tests):
                yield Offender(tests, 1, f"has no case of {rule.code}")
        elif checkout.exists(path):
            for line, message in _lacks(rule, Cases(Path(path), checkout.text(path), "", None)):
                yield Offender(path, line, message)
        else:
            yield Offender(path, 1, f"{rule.code} has no cases")


def _lacks(rule: Rule, cases: Cases) -> Iterator[tuple[int, str]]:
    def line(block: Block) -> int:
        return line_at(cases.text, block.start)

    title = f"# Cases of {rule.name} ({rule.code})"
    if not cases.text.startswith(f"{title}\n"):
        yield 1, f"the title is not `{title}`"
    if cases.parts() != [part for part in PARTS if part in cases.parts()]:
        yield 1, f"the parts are not {', '.join(PARTS)}, in this order"
    for part in (FOUND, NOT_FOUND):
        if not cases.blocks(part):
            yield 1, f"no case in `{part}`"
    for block in cases.blocks(FOUND):
        if f" {rule.code} " not in block.text:
            yield line(block), f"a case of `{FOUND}` without {rule.code}"
    for block in cases.blocks(NOT_FOUND):
        if block.text != without_marks(block.text):
            yield line(block), f"a near miss with a finding in `{NOT_FOUND}`"
