"""Fix programs of datasets as `jaxsight check --fix` does, for the CPU."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jaxsight.features.fixes.registry import FIXES
from jaxsight.features.fixes.verifier import Fix
from jaxsight.rules import RULES
from jaxsight.session import Session
from jaxsight_dataset.cli.sessions import drop_events, session_in

_SECONDS = 300.0
"""Seconds after which the check of a program is a hang, a choice: less loses slow compiles."""


class ProgramFixes:
    """Finds proved fixes of programs, in a folder and a session of its own."""

    def __init__(self, session: Session, folder: Path) -> None:
        self._session = session
        self._folder = folder

    async def of(self, name: str, text: str) -> list[Fix] | None:
        """Return the proved fixes of a program, or None if that takes too long.

        Args:
            name: that of the module, another one for each program.
            text: the program.
        """
        path = str(self._folder / f"{name}.py")
        self._session.open(path, text)
        try:
            return await asyncio.wait_for(self._session.fixes(path), _SECONDS)
        except TimeoutError:
            return None
        finally:
            self._session.close(path)
            drop_events(self._session)


@asynccontextmanager
async def program_fixes(python: str) -> AsyncIterator[ProgramFixes]:
    """Provide what finds fixes; rules that measure times are off.

    The programs run with the rights of the user: this is for those that the user trusts.

    Args:
        python: an interpreter that has JAX.
    """
    select = [code for code in sorted(FIXES) if not RULES[code].says_times]
    with tempfile.TemporaryDirectory(prefix="jaxsight-fixes-") as folder:
        async with session_in(folder, python, select=select) as session:
            yield ProgramFixes(session, Path(folder))
