"""Commands about runs of the user's code, with consent, progress and a way to cancel.

`jaxsight.measure FILE FUNCTION [cancel or wait]` runs a function and times it,
`jaxsight.runUntilSeen FILE` runs the user's program, and `jaxsight.openProfile PATH` reads a
profile of a run of the past and shows its report. Clients that do not know jaxsight are answered at
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

from jaxsight.lsp.context import ClientContext, WrongArguments
from jaxsight.lsp.documents.uris import path_of
from jaxsight.lsp.documents.virtual_uris import PROFILE, VirtualDocument
from jaxsight.lsp.features.virtual_documents import VirtualDocuments
from jaxsight.lsp.progress import progress_bar
from jaxsight.text import units

if TYPE_CHECKING:
    from jaxsight.features.recording.actions import RunPlan
    from jaxsight.features.recording.until_called import RunCoverage, RunOutcome

MEASURE = "jaxsight.measure"
OPEN_PROFILE = "jaxsight.openProfile"
RUN_UNTIL_SEEN = "jaxsight.runUntilSeen"

_NAMED = 4
"""Functions that a message names, a choice: a notification has about two lines."""

Answer = dict[str, object] | None
"""What came of a run; `None` if the user does not want it, or cancels it."""


class RunCommands:
    """Runs functions and programs, and opens profiles, for one connection."""

    def __init__(self, context: ClientContext, virtual_documents: VirtualDocuments) -> None:
        self._context = context
        self._virtual_documents = virtual_documents
        self._agreed: set[tuple[str, str]] = set()
        """The folders in which the user lets functions be measured, and programs be run by name,
        for this session."""
        self._files: set[str] = set()
        """The files that a program is run for."""

    async def measure(self, path: str, function: str, how: str | None = None) -> Answer:
        """Measure a function, once the user agrees; with `wait`, every client waits for the answer.

        Raises:
            LookupError: it cannot be measured; the message says why.
        """
        match how:
            case None:
                work = self._measured(path, function)
                return await self._context.answered(work, f"measuring {function}")
            case "wait":
                return await self._measured(path, function)
            case "cancel":
                self._context.session.measuring.cancel(path, function)
                return None
        raise WrongArguments

    async def _measured(self, path: str, function: str) -> Answer:
        context = self._context
        plan = await context.session.measuring.plan(path, function)
        command = f"measure FILE:{plan.function}"
        if not await self._agrees((plan.root, ""), plan.prompt, ["Cancel", "Measure"], command):
            return None
        async with progress_bar(context, f"Measuring {function}") as bar:
            times = await bar.result_of(context.session.measuring.run(plan, bar.report))
        if times is None:
            return None
        headline = f"{function}: {times.headline} on {plan.target.short}"
        if not context.client.knows_us:
            context.show_message(types.MessageType.Info, headline)
        known = times.measurement.times
        return {
            "headline": headline,
            "wallSeconds": known.wall.median,
            "deviceSeconds": known.device_seconds if known.device_seconds >= 0 else None,
            "notes": times.facts,
        }

    async def _agrees(
        self, key: tuple[str, str], question: str, answers: Sequence[str], command: str
    ) -> bool:
        """Ask whether code may run, once for each key: a link in a text may name the command."""
        if key not in self._agreed:
            if not await self._context.agrees(question, answers, command):
                return False
            self._agreed.add(key)
        return True

    async def open_profile(self, path: str) -> Answer:
        """Open a profile: a file, or a folder with runs.

        Raises:
            LookupError: there is none; the message says why.
        """
        return await self._context.answered(self._opened(path), "a profile")

    async def _opened(self, path: str) -> Answer:
        context = self._context
        # Editors end the path of a folder with a slash, which the document's URI would double.
        path = (path_of(path) or path).rstrip("/\\")
        stop = asyncio.Event()
        async with progress_bar(context, "Reading the profile") as bar:
            bar.when_cancelled(stop.set)
            document = await context.session.open_profile(path, bar.report, stop)
        if document is None:
            return None
        shown = VirtualDocument(path, document, PROFILE)
        content = await self._virtual_documents.compute(shown)
        self._virtual_documents.refresh(path)
        await self._virtual_documents.open(shown, content.text)
        return {"uri": shown.uri(), "text": content.text}

    async def run_until_called(self, path: str) -> Answer:
        """Run the program of a file.

        Raises:
            LookupError: there is no such program, or it may not run; the message says which.
        """
        return await self._context.answered(self._ran(path), "a run until seen")

    async def _ran(self, path: str) -> Answer:
        plan = await self._context.session.until_seen.plan(path)
        title = plan.program.title
        command = f"record --until-seen -- {title}"
        if path in self._files or not await self._agrees(
            (plan.root, title), plan.prompt, ["Run"], command
        ):
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

    async def _followed(self, plan: RunPlan) -> RunOutcome:
        context = self._context
        stop = asyncio.Event()
        async with progress_bar(context, f"Running {plan.program.title}") as bar:
            bar.when_cancelled(stop.set)

            def report(seen: RunCoverage) -> None:
                bar.report(f"missing: {units.some([name for _, name in seen.missing], _NAMED)}")
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
        words = f"{len(missing)} of {total} not called: {units.some(missing, _NAMED)}"
        if outcome.ending == "ended" and outcome.recording.status:
            last = outcome.errors.strip().rpartition("\n")[2]
            self._context.refuse(f"{plan.program.title} failed ({last}); {words}")
            self._context.log_message(types.MessageType.Warning, outcome.errors)
        elif outcome.ending == "time limit":
            self._context.refuse(f"{plan.program.title} took too long; {words}")
        else:
            self._context.refuse(words)
