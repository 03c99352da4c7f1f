"""Which module proposes fixes for which code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jaxsight.engine.fixes import jx201, jx405
from jaxsight.engine.fixes.asked import Asked, Candidate

Propose = Callable[[Asked], Iterator[Candidate]]

FIXES: Mapping[str, tuple[Propose, ...]] = {
    jx201.CODE: (jx201.candidates,),
    jx405.CODE: (jx405.candidates,),
}
"""By code: what proposes fixes, the best first."""
