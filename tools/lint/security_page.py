"""SECURITY.md has the limits in force, and all folders in the cache folder."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.files import reading
from jaxsight.settings.reading import DEEPEST
from tools.lint.checkout import Checkout, Offender

PAGE = "SECURITY.md"
LIMITS = {
    "`pyproject.toml`": f"{reading.SETTINGS // 1024} KiB, {DEEPEST} levels of nesting",
    "Python files, baselines, reports": f"{reading.SOURCE // 1024**2} MiB",
    "jaxsight's own records": f"{reading.SMALL // 1024} KiB",
}
_NAMED = re.compile(r"`([\w-]+)/` in the cache folder")
_ASKED = re.compile(r'(?:cache|new)_folder(?:\(|, )"([\w-]+)"')


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield limits that are others, and folders that only the page or only the code names."""
    text = checkout.text(PAGE)
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")]
    for name, limit in LIMITS.items():
        if [row[2].strip() for row in rows if row[1].strip() == name] != [limit]:
            yield Offender(PAGE, 1, f"the limit of {name} is not `{limit}`")
    asked = {
        folder: module.path for module in checkout.modules for folder in _ASKED.findall(module.text)
    }
    named = set(_NAMED.findall(text))
    for folder in sorted(asked.keys() - named):
        yield Offender(asked[folder], 1, f"`{folder}/` in the cache folder is not in {PAGE}")
    for folder in sorted(named - asked.keys()):
        yield Offender(PAGE, 1, f"no code asks for `{folder}/` in the cache folder")
