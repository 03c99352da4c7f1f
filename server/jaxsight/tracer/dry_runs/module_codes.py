"""The rewritten codes of modules, which are kept between runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from types import CodeType

from jaxsight.lru import Recent
from jaxsight.rewriting.compiling import compiled
from jaxsight.rewriting.survival import SurvivalRewriter
from jaxsight.tracer.dry_runs.replaced_codes import codes_of

_MODULES = 256
"""Modules whose rewritten codes are kept, a choice: those of a large project."""

_ByPlace = Mapping[tuple[str, int], CodeType]


class ModuleCodes:
    """The rewritten codes of modules, by file and text."""

    def __init__(self) -> None:
        self._codes: Recent[tuple[str, str], _ByPlace] = Recent(_MODULES)

    def of(self, file: str, text: str, deadline: float) -> _ByPlace | None:
        """Return the codes of a module; `None` if the processor time is over."""
        codes = self._codes.get((file, text))
        # Of this process: a busy machine rewrites as many.
        if codes is None and time.process_time() < deadline:
            codes = {}
            with contextlib.suppress(SyntaxError, ValueError, RecursionError):
                rewriter = SurvivalRewriter()
                code = compiled(text, file, rewriter.rewrite)
                codes = codes_of(rewriter.functions, code)
            self._codes.put((file, text), codes)
        return codes
