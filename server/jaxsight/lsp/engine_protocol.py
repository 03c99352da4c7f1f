"""The engine's interface to the protocol, implemented by `jaxsight.session.Session`.

Ranges and positions in answers refer to the text at the time of the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from jaxsight.events import Consent, Event
from jaxsight.features.model import Action, Completion, Hint, Hover, Lens, Panel, Repro, Shown
from jaxsight.source.text import Edit, Position, Range
from jaxsight.wire.messages.requests import SourceOptions

if TYPE_CHECKING:
    # The protocol answers `initialize` before the engine is imported.
    from jaxsight.features.call_hierarchy import TracedCalls
    from jaxsight.features.findings.findings import Findings
    from jaxsight.features.recording.actions import Plan as RunPlan
    from jaxsight.features.recording.until_seen import Outcome, Seen
    from jaxsight.features.setup.installing import Plan
    from jaxsight.features.setup.targets import Offers


class Configurable(Protocol):
    """Accepts folders and settings."""

    def configure(
        self,
        roots: Sequence[str],
        editor: Mapping[str, object],
        *,
        trusted: bool | None,
        editor_python: Mapping[str, str],
        editor_by_root: Mapping[str, Mapping[str, object]],
    ) -> object: ...


class Engine(Protocol):
    """The engine in two steps: tracers start on construction, `session` imports the rest, once."""

    def session(self) -> EngineSession: ...

    async def aclose(self) -> None: ...


class EngineSession(Configurable, Protocol):
    """The engine for the protocol: accepts texts and settings, answers requests, emits events."""

    events: asyncio.Queue[Event]

    def attend(self) -> None: ...

    def open(self, path: str, text: str) -> None: ...

    def change(self, path: str, text: str, cursor: Position | None = None) -> None: ...

    def saved(self, path: str) -> None: ...

    async def show_proposed(self, path: str, function: str, *, hide: bool = False) -> None: ...

    async def keep_proposed(self, path: str, function: str) -> Action: ...

    def close(self, path: str) -> None: ...

    def files_changed(self, paths: Sequence[str]) -> None: ...

    def look_for_recordings(self) -> None: ...
    async def import_ahead(self) -> None: ...

    async def hover(self, path: str, position: Position) -> Hover | None: ...

    async def hints(self, path: str, range: Range | None) -> list[Hint]: ...

    async def report(self, path: str) -> Findings: ...

    def start_fixes(self, path: str, report: Findings) -> None: ...

    async def lenses(self, path: str) -> list[Lens]: ...

    async def actions(self, path: str, range: Range) -> list[Action]: ...

    async def completions(self, path: str, position: Position) -> list[Completion]: ...

    async def resolve(self, path: str, pending: str) -> tuple[Edit, ...]: ...

    async def show(self, path: str, function: str, what: str | SourceOptions) -> Shown: ...

    async def calls(self, path: str) -> TracedCalls: ...

    async def plan_until_seen(self, path: str) -> RunPlan: ...

    async def run_until_seen(
        self, plan: RunPlan, report: Callable[[Seen], None], stop: asyncio.Event
    ) -> Outcome: ...

    async def extract_repro(
        self, path: str, function: str, check: str, report: Callable[[str], None]
    ) -> Repro: ...

    async def reduce_repro(
        self, path: str, function: str, report: Callable[[str], None], interrupted: asyncio.Event
    ) -> Repro: ...

    async def panel(self, path: str, where: Position | str) -> Panel | None: ...

    def sets(self, path: str, function: str) -> list[str]: ...

    def inputs_range(self, path: str, function: str) -> Range: ...

    def choose_set(self, path: str, function: str, name: str) -> None: ...

    def choose_target(self, name: str) -> None: ...

    async def offers(self, path: str) -> Offers: ...

    async def compiler_plan(self, path: str, platform: str) -> Plan: ...

    async def install_compiler(self, plan: Plan, report: Callable[[str], None]) -> str: ...

    async def decide(self, consent: Consent, answer: str | None) -> None: ...

    def ask_again(self, folder: str | None = None) -> bool: ...

    async def restart(self, root: str | None = None) -> None: ...
