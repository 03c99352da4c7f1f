"""Some of the random programs of `tests.jaxsight_source.randomly`, which makes as many as one likes."""

from __future__ import annotations

import pytest

from tests.jaxsight_source.randomly import outcome, program


@pytest.mark.parametrize("number", range(8))
def test_random_program_is_written_exactly(number: int) -> None:
    came = outcome(program(number), "pretty" if number % 2 else "lax")
    assert came.kind in ("exact", "not run"), came.why
