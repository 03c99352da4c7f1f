"""Which module proposes fixes for which code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jaxsight.engine.fixes import (
    jx101,
    jx102,
    jx201,
    jx203,
    jx204,
    jx205,
    jx206,
    jx207,
    jx208,
    jx209,
    jx301,
    jx302,
    jx303,
    jx304,
    jx401,
    jx403,
    jx405,
    jx407,
    jx412,
)
from jaxsight.engine.fixes.asked import Asked, Candidate

Propose = Callable[[Asked], Iterator[Candidate]]

FIXES: Mapping[str, Propose] = {
    **dict.fromkeys(jx101.CODES, jx101.candidates),
    **dict.fromkeys(jx102.CODES, jx102.candidates),
    **{
        module.CODE: module.candidates
        for module in (
            jx201,
            jx203,
            jx204,
            jx205,
            jx206,
            jx207,
            jx208,
            jx209,
            jx301,
            jx302,
            jx303,
            jx304,
            jx401,
            jx403,
            jx405,
            jx407,
            jx412,
        )
    },
}
"""By code: what proposes fixes for it, the best first."""
