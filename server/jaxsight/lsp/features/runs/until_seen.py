"""`jaxsight.runUntilSeen FILE`: run the user's program, once they agree, with progress."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.notifications.progress import cancellable
from jaxsight.text import units

if TYPE_CHECKING:
    from jaxsight.features.recording.actions import RunPlan
    from jaxsight.features.recording.until_seen import RunOutcome, SeenFunctions

RUN_UNTIL_SEEN = "jaxsight.runUntilSeen"

_NAMED = 4
"""Functions that a message names, a choice: a notification has about two lines."""

Answer = dict[str, object] | None
"""Why the run is over, and the functions that were seen and that are missing."""


class UntilSeenCommand:
    """Runs programs for one connection."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._agreed: set[tuple[str, str]] = set()
        self._files: set[str] = set()
        """The files that a program is run for."""

    async def run(self, path: str) -> Answer:
        """Run the program of a file; return `None` if the user does not want that.

        Clients that do not know jaxsight are answered at once.

        Raises:
            LookupError: there is no such program, or it may not run; the message says which.
        """
        return await self._context.answered(self._run(path), "a run until seen")

    async def _run(self, path: str) -> Answer:
        plan = await self._context.session.until_seen.plan(path)
        if path in self._files or not await self._agrees(plan):
            return None
        self._files.add(path)
        try:
            outcome = await self._followed(plan)
        finally:
            self._files.discard(path)
        self._tell(plan, outcome)
        seen = outcome.seen
        return {
            "reason": outcome.ending,
            "seen": [name for _, name in (*seen.with_arrays, *seen.without_arrays)],
            "missing": [name for _, name in seen.missing],
        }

    async def _agrees(self, plan: RunPlan) -> bool:
        """Ask whether a program may run, once for each: a link in a text may name the command."""
        key = plan.root, plan.program.title
        if key not in self._agreed:
            command = f"record --until-seen -- {plan.program.title}"
            if not await self._context.agrees(plan.question, ["Run"], command):
                return False
            self._agreed.add(key)
        return True

    async def _followed(self, plan: RunPlan) -> RunOutcome:
        context = self._context
        stop = asyncio.Event()
        async with cancellable(context, f"Running {plan.program.title}") as bar:
            bar.when_cancelled(stop.set)

            def report(seen: SeenFunctions) -> None:
                bar.report(f"missing: {_listed([name for _, name in seen.missing])}")
                context.session.look_for_recordings()

            outcome = await context.session.until_seen.run(plan, report, stop)
        context.session.look_for_recordings()
        return outcome

    def _tell(self, plan: RunPlan, outcome: RunOutcome) -> None:
        """Say what was not called, and why the program ended."""
        missing = [name for _, name in outcome.seen.missing]
        if not missing or outcome.ending == "stopped":
            return
        total = units.count(len(plan.wanted), "function")
        words = f"{len(missing)} of {total} not called: {_listed(missing)}"
        status = outcome.recording.status
        match outcome.ending:
            case "ended" if status:
                last = outcome.errors.strip().rpartition("\n")[2]
                self._context.refuse(f"{plan.program.title} failed ({last}); {words}")
                self._context.log_message(types.MessageType.Warning, outcome.errors)
            case "time limit":
                self._context.refuse(f"{plan.program.title} took too long; {words}")
            case _:
                self._context.refuse(words)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
