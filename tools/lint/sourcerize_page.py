"""The gradient that `docs/source/sourcerize.md` shows is shorter than the other tool's, as it says."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from tools.lint.checkout import Checkout, Offender, line_at

PAGE = "docs/source/sourcerize.md"
_OURS = re.compile(
    r"^ *```console\n *\$ jaxsight sourcerize examples/sliding_window\.py:grad_fn --style pretty\n"
    r"(.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
_THEIRS = re.compile(r'^=== "jax_sourceror"\n.*?```python\n(.*?)^ *```$', re.MULTILINE | re.DOTALL)


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield what is missing, or longer than it should be."""
    text = checkout.text(PAGE)
    found, other = _OURS.search(text), _THEIRS.search(text)
    if found is None or other is None:
        yield Offender(PAGE, 1, "the gradient of `sliding_window.py` is not shown by both tools")
        return
    ours, theirs = textwrap.dedent(found[1]), textwrap.dedent(other[1])
    lines = ours.splitlines()
    line = line_at(text, found.start())
    if len(lines) >= len(theirs.splitlines()) or len(ours) >= len(theirs):
        yield Offender(PAGE, line, "our gradient is no shorter than the other tool's")
    told = f"Ours has {len(lines)} lines of at most {max(map(len, lines))}"
    if told not in text:
        yield Offender(PAGE, line, f"the page does not say `{told}`")
