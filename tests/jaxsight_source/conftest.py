"""Functions are written, executed in a fresh module, traced again and compared, with values where
they can be run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest

from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from jaxsight_source.written import Written, load
from tests.jaxsight_source.harnesses import bits, check


@pytest.fixture
def round_trip() -> Callable[..., Written]:
    """Writes `function`, and fails unless the text is the same program and gives the same bits."""

    def of(function: Callable[..., Any], *args: Any, run: bool = True, **options: Any) -> Written:
        written = write(function, args, {}, SourceOptions(**options, run=False))
        difference = check(written, function, args, {})
        assert difference is None, f"{difference}\n{written.text}"
        if run:
            made = load(written)
            assert bits(jax.jit(made)(*args)) == bits(jax.jit(function)(*args)), written.text
        return written

    return of
