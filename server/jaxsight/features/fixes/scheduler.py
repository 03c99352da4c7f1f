"""Schedule the verification of fixes: in the background, after findings are known.

Fixes that a person asks for come first. An edit cancels them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jaxsight.features.findings.findings import Findings
from jaxsight.features.fixes.verifier import FIXES, Fix, FixVerifier
from jaxsight.queries.engine import Engine
from jaxsight.queries.sandbox import Sandboxes
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.finding import Finding
from jaxsight.rules.rule import Proof
from jaxsight.source.module import Module
from jaxsight.source.text import Edit, Position, Range
from jaxsight.targets.target import Target

log = logging.getLogger(__name__)

PAUSE = 0.5
"""Seconds after which candidates of new findings are tried, a choice: typing has to cancel them."""


@dataclass(eq=False, slots=True)
class _Work:
    module: Module
    view: View | None
    """The function that the finding is in; `None` for a fix that is proved by the text alone."""
    finding: Finding
    target: Target | None
    done: asyncio.Future[Fix | None]


@dataclass(eq=False, slots=True)
class FixScheduler:
    """The fixes of a session."""

    engine: Engine
    _work: dict[str, list[_Work]] = field(default_factory=dict)
    """By file, in the order of verification."""
    _sandboxes: Sandboxes = field(default_factory=Sandboxes)
    _worker: asyncio.Task[None] | None = None
    _current: tuple[str, asyncio.Task[Fix | None]] | None = None
    _verifying: FixVerifier = field(init=False)

    def __post_init__(self) -> None:
        self._verifying = FixVerifier(self.engine)

    def start(self, path: str, report: Findings, *, pause: float = PAUSE) -> None:
        """Verify fixes of a file's current findings, in place of the earlier ones."""
        views = {finding: view for view, finding in report.owners}
        pairs: list[tuple[View | None, Finding]] = []
        for finding in report.reported if report.module is not None else ():
            if finding.code not in FIXES or finding.stale:
                continue
            if FIXES[finding.code].proof is Proof.WRITTEN:
                pairs.append((None, finding))
            elif (view := views.get(finding)) is not None and not view.stale:
                pairs.append((view, finding))
        module, target = report.module, report.target
        before = [(work.finding, work.module, work.target) for work in self._work.get(path, [])]
        if before == [(finding, module, target) for _, finding in pairs]:
            return
        self.stop(path)
        if not pairs or module is None:
            return
        loop = asyncio.get_running_loop()
        works = [
            _Work(module, view, finding, target, loop.create_future()) for view, finding in pairs
        ]
        self._work[path] = works
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._run(pause), name="fixes")

    def stop(self, path: str) -> None:
        """Cancel the fixes of a file that was edited or closed."""
        for work in self._work.pop(path, []):
            if not work.done.done():
                work.done.set_result(None)
        if self._current is not None and self._current[0] == path:
            self._current[1].cancel()

    async def fixes(
        self, path: str, module: Module, range: Range | None, patience: float | None
    ) -> list[Fix]:
        """Return the fixes of findings in a range that are verified within `patience` seconds.

        Without `patience`, all of them are awaited.
        """
        works = [
            work
            for work in self._work.get(path, [])
            if work.module is module and (range is None or range.touches(work.finding.range))
        ]
        if range is not None and path in self._work:
            self._work[path].sort(key=lambda work: work not in works)
        if waiting := [work.done for work in works if not work.done.done()]:
            await asyncio.wait(waiting, timeout=patience)
        done = [work.done.result() for work in works if work.done.done()]
        by_edits: dict[tuple[Edit, ...], Fix] = {}
        for fix in done:
            if fix is not None:  # functions that share a helper have the same fix
                first = by_edits.setdefault(fix.edits, fix)
                by_edits[fix.edits] = replace(first, safe=first.safe and fix.safe)
        return list(by_edits.values())

    async def aclose(self) -> None:
        """Cancel all work and end the processes."""
        for path in list(self._work):
            self.stop(path)
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        await self._sandboxes.aclose()

    async def _run(self, pause: float) -> None:
        await asyncio.sleep(pause)
        while True:
            waiting = (
                (path, work)
                for path, works in self._work.items()
                for work in works
                if not work.done.done()
            )
            if (first := next(waiting, None)) is None:
                return
            path, work = first
            sandbox = self._sandboxes.of(self.engine.projects.of(path))
            trying = asyncio.create_task(
                self._verifying.fix(sandbox, work.view, work.finding, work.target)
                if work.view is not None
                else self._verifying.in_text(work.module, work.finding)
            )
            self._current = path, trying
            fix: Fix | None = None
            try:
                await asyncio.wait([trying])
                fix = None if trying.cancelled() else trying.result()
            except asyncio.CancelledError:
                trying.cancel()
                raise
            except Exception:
                log.exception("trying to fix %s in %s", work.finding.code, path)
            finally:
                self._current = None
                sandbox.rest()
                if not work.done.done():
                    work.done.set_result(fix)


# Fixes as JSON, with ruff's keys: rows and columns count from 1, ends are exclusive.


def fix_record(fix: Fix) -> dict[str, object]:
    """Return a fix; `unsafe` ones need `--unsafe-fixes`."""
    return {
        "applicability": "safe" if fix.safe else "unsafe",
        "message": fix.title,
        "edits": edit_records(fix.edits),
    }


def edit_records(edits: Sequence[Edit]) -> list[dict[str, object]]:
    """Return edits of a text, each with its range and the text that replaces it."""
    return [
        {
            "content": edit.text,
            "location": location(edit.range.start),
            "end_location": location(edit.range.end),
        }
        for edit in edits
    ]


def location(position: Position) -> dict[str, int]:
    """Return a position."""
    return {"row": position.line + 1, "column": position.column + 1}
