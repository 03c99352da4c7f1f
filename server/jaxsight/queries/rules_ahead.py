"""Import the rules without blocking the event loop."""

from __future__ import annotations

import asyncio
import dataclasses

from jaxsight import rules
from jaxsight.files.bytecode import cached_bytecode, file_for
from jaxsight.queries.long_work import Turns

_TURNS = 20
"""Turns of the loop before importing begins, a choice: answers that waited for traces go first."""


class RulesAhead:
    """Imports rules when findings are asked for first: it takes longer than a hover."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._importing: asyncio.Task[None] | None = None
        self._imported = asyncio.Event()

    @property
    def are_ready(self) -> bool:
        """Whether all rules are imported."""
        return self._imported.is_set()

    def start(self) -> None:
        """Begin to import the rules, if that has not been done."""
        if self._importing is None:
            self._importing = asyncio.create_task(self._import(), name="import rules")

    async def ready(self) -> None:
        """Return when all rules are imported."""
        self.start()
        await self._imported.wait()

    async def aclose(self) -> None:
        """Stop importing."""
        if self._importing is not None:
            self._importing.cancel()
            await asyncio.gather(self._importing, return_exceptions=True)

    async def _import(self) -> None:
        try:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            with cached_bytecode(file_for("rules"), dataclasses):
                for _ in rules.import_ahead():
                    await self._turns.breathe()
        finally:
            self._imported.set()  # what is missing is imported where it is used
