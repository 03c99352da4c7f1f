"""No-op commits in a library are silent, and planted regressions are found: those of one of five.

`python -m tests.locks` has all.
"""

from __future__ import annotations

import jax
import pytest

from tests.locks.__main__ import alarms, causes, locked
from tests.locks.planted import LIBRARIES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.asyncio,
    pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="what XLA fuses depends on it"),
]


async def test_commits_that_change_no_program_are_silent_and_regressions_are_found() -> None:
    library = LIBRARIES[-1]
    async with locked(library) as lock:
        assert await alarms(library, lock) == {}
        found = await causes(library, lock)
    assert [key for key, (message, _, _) in found.items() if message == "nothing"] == []
    assert [key for key, (_, line, at) in found.items() if line != at] == []
