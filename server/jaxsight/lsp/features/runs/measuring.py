"""`jaxsight.measure FILE FUNCTION`: run a function and time it, once the user agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.notifications.progress import cancellable

if TYPE_CHECKING:
    from jaxsight.features.measuring.asked import MeasurePlan

MEASURE = "jaxsight.measure"


class MeasureCommand:
    """Measures functions for one connection."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._agreed: set[str] = set()
        """The folders whose functions the user lets be measured, for this session."""

    async def run(self, path: str, function: str) -> dict[str, object] | None:
        """Measure a function; return `None` if the user does not want that, or cancels it.

        Clients that do not know jaxsight are answered at once, and shown a message at the end.

        Raises:
            LookupError: it cannot be measured; the message says why.
        """
        return await self._context.answered(self.measured(path, function), f"measuring {function}")

    def cancel(self, path: str, function: str) -> None:
        """Cancel the measurement of a function, if there is one."""
        self._context.session.measuring.cancel(path, function)

    async def measured(self, path: str, function: str) -> dict[str, object] | None:
        """Measure a function, as `run`, and wait for it."""
        context = self._context
        plan = await context.session.measuring.plan(path, function)
        if not await self._agrees(plan):
            return None
        async with cancellable(context, f"Measuring {function}") as bar:
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

    async def _agrees(self, plan: MeasurePlan) -> bool:
        """Ask whether functions of a folder may be measured, once: a link may run the command."""
        if plan.root not in self._agreed:
            command = f"measure FILE:{plan.function}"
            if not await self._context.agrees(plan.question, ["Cancel", "Measure"], command):
                return False
            self._agreed.add(plan.root)
        return True
