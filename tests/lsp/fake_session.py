"""An engine that knows words instead of JAX: enough to see what the protocol makes of answers.

`bad` is a finding (with `good` as related), each `name = ` gets a hint, hovers tell the word, `def`
has a lens and an action. All of it is computed from the text that the protocol gave, in the
engine's own positions, so a wrong conversion shows.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

from jaxsight.events import Consent, Event
from jaxsight.features.findings.findings import Findings
from jaxsight.features.measuring.actions import MeasurePlan
from jaxsight.features.measuring.timing import LastTimes
from jaxsight.features.model import (
    Action,
    Completion,
    Hint,
    Hover,
    Lens,
    Linked,
    Panel,
    VirtualText,
)
from jaxsight.features.setup.targets import Compiler, Group, InstallPlan, Offer, Offers
from jaxsight.features.sweeps import DrawnSweep
from jaxsight.queries.memory import Measurement
from jaxsight.rules.finding import Finding, Place, Severity
from jaxsight.source.text import Edit, Position, Range
from jaxsight.sweeps.picture import DrawnShape, Picture
from jaxsight.targets.target import parse
from jaxsight.wire.messages.measuring import ProgramTimes, Spread
from jaxsight.wire.messages.requests import TransformedSource
from jaxsight.workers.compilation.default_target import State

SOURCERIZE = "refactor.rewrite.jaxsight.sourcerize"


@dataclass(frozen=True)
class Configured:
    roots: tuple[str, ...]
    editor: Mapping[str, object]
    trusted: bool | None
    python: Mapping[str, str]
    by_root: Mapping[str, Mapping[str, object]]


TIMES = ProgramTimes(Spread(412e-6, 4e-4, 42e-5, 4e-4, 42e-5, 4e-4, 9), 390e-6, 0.0)

REFUSAL = (
    "deep cannot be inverted: dot_general is invertible for a product with a matrix that does not "
    'depend on the argument\n  File "model.py", line 3\n    return x @ x.T'
)
"""A reason that no pop-up shows as a whole."""


@dataclass
class FakeMeasurements:
    """Measures `f` in 412 µs, and `endless` until it is cancelled."""

    asked: list[tuple[str, str]] = field(default_factory=list)
    cancelled: list[tuple[str, str]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    async def plan(self, path: str, function: str) -> MeasurePlan:
        if function == "absent":
            raise LookupError("absent cannot be measured on cuda:h100")
        return MeasurePlan(path, function, "/home/user/project", parse("cpu"))

    async def run(self, plan: MeasurePlan, report: Callable[[str], None]) -> LastTimes | None:
        self.asked.append((plan.path, plan.function))
        report("compiling")
        if plan.function == "endless":
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.append(plan.function)
        known = cast(Measurement, SimpleNamespace(times=TIMES))
        return cast(
            LastTimes,
            SimpleNamespace(
                measurement=known, headline="412 µs measured (≈ 380)", facts=["median of 9 runs"]
            ),
        )

    def cancel(self, path: str, function: str) -> bool:
        self.cancelled.append((path, function))
        return True


@dataclass
class FakeSession:
    texts: dict[str, str] = field(default_factory=dict)
    configured: list[Configured] = field(default_factory=list)
    saved_paths: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    changed_files: list[str] = field(default_factory=list)
    chosen: dict[tuple[str, str], str] = field(default_factory=dict)
    decided: list[tuple[Consent, str | None]] = field(default_factory=list)
    asked_again: list[str | None] = field(default_factory=list)
    restarted: list[str | None] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    shown: list[tuple[str, str, bool]] = field(default_factory=list)
    """Functions that are shown with proposed inputs, and whether they are hidden."""
    measured: FakeMeasurements = field(default_factory=lambda: FakeMeasurements())
    slow: asyncio.Event | None = None
    """While it is set up and not set, hovers wait for it."""
    fault: Exception | None = None
    """What hovers and findings raise."""

    def __post_init__(self) -> None:
        self.events: asyncio.Queue[Event] = asyncio.Queue()

    def attend(self) -> None:
        """Nothing waits here."""

    def configure(
        self,
        roots: Sequence[str],
        editor: Mapping[str, object],
        *,
        trusted: bool | None,
        editor_python: Mapping[str, str],
        editor_by_root: Mapping[str, Mapping[str, object]],
    ) -> None:
        self.configured.append(
            Configured(tuple(roots), editor, trusted, editor_python, editor_by_root)
        )

    def open(self, path: str, text: str) -> None:
        self.texts[path] = text

    def change(self, path: str, text: str, cursor: Position | None = None) -> None:
        assert path in self.texts
        self.texts[path] = text

    def saved(self, path: str) -> None:
        self.saved_paths.append(path)

    def close(self, path: str) -> None:
        del self.texts[path]

    def files_changed(self, paths: Sequence[str]) -> None:
        self.changed_files += paths

    def look_for_recordings(self) -> None:
        pass

    async def preload(self) -> None:
        pass

    async def hover(self, path: str, position: Position) -> Hover | None:
        if self.fault is not None:
            raise self.fault
        if self.slow is not None:
            try:
                await self.slow.wait()
            except asyncio.CancelledError:
                self.cancelled.append(path)
                raise
        for range, word in self.words(path, r"\w+"):
            if position in range:
                return Hover(range, f"**{word}** is `f32[8]`")
        return None

    async def hints(self, path: str, range: Range | None = None) -> list[Hint]:
        words = self.words(path, r"\b\w+(?= = )")
        return [
            Hint(named, f": {word}", f"tooltip of `{word}`", attached=True)
            for named, word in words
            if range is None or named.end in range
        ]

    async def report(self, path: str) -> Findings:
        if self.fault is not None:
            raise self.fault
        related = tuple(Place(path, named, "see here") for named, _ in self.words(path, r"\bgood"))
        return Findings(
            [
                Finding(
                    "JX1",
                    Severity.WARNING,
                    named,
                    "bad",
                    "https://example.org/JX1",
                    related,
                    help="make it `good`",
                    notes=("it is not good", "it was never good"),
                )
                for named, _ in self.words(path, r"\bbad\b")
            ]
        )

    def start_fixes(self, path: str, report: Findings) -> None:
        pass

    async def lenses(self, path: str) -> list[Lens]:
        return [
            Lens(named, "sets", "jaxsight.chooseSet", (path, word))
            for named, word in self.words(path, r"(?<=def )\w+")
        ]

    async def actions(self, path: str, range: Range) -> list[Action]:
        line = Position(range.start.line, 0)
        edit = Edit(Range(line, line), "# added\n")
        return [
            Action("Add", "refactor.rewrite.jaxsight", (edit,)),
            *(
                action
                for named, word in self.words(path, r"(?<=def )\w+")
                if named.start.line == range.start.line
                for action in (
                    Action("Put below", SOURCERIZE, pending=word),
                    Action("Show", SOURCERIZE, command="jaxsight.show", arguments=(path, word)),
                )
            ),
        ]

    async def resolve(self, path: str, pending: str) -> tuple[Edit, ...]:
        if pending == "hard":
            raise LookupError("hard cannot be written as source")
        if pending == "deep":
            raise LookupError(REFUSAL)
        last = Position(self.texts[path].count("\n"), 0)
        return (Edit(Range(last, last), f"# {pending}\n"),)

    async def show_proposed(self, path: str, function: str, *, hide: bool = False) -> None:
        if function == "hard":
            raise LookupError("no proposed inputs of hard can be traced")
        self.shown.append((path, function, hide))

    async def keep_proposed(self, path: str, function: str) -> Action:
        start = Position(0, 0)
        file = function if function.endswith(".toml") else ""
        edit = Edit(Range(start, start), f"# {function}\n")
        return Action("Keep", "refactor.rewrite.jaxsight", (edit,), file=file)

    async def completions(self, path: str, position: Position) -> list[Completion]:
        start = Position(position.line, max(0, position.column - 1))
        edit = Edit(Range(start, position), "f32")
        return [Completion("f32", "dtype", edit, "float32")]

    async def show(
        self,
        path: str,
        function: str,
        what: str | TransformedSource = "jaxpr",
        program: str | None = None,
    ) -> VirtualText:
        if what == "profile":
            return VirtualText("report.profile", f"{function} of {path}\n")
        if path not in self.texts:
            raise LookupError(f"{path} is not open")
        places = self.words(path, rf"(?<=def ){function}\b")
        if not places:
            raise LookupError(f"there is no function {function}")
        if function == "deep":
            raise LookupError(REFUSAL)
        if isinstance(what, TransformedSource):
            text = f"# {what.style} {what.transform} {function}\n"
            return VirtualText(f"{function}.py", text, (Linked(0, "0", places[0][0]),))
        return VirtualText(
            f"{function}.{what}", f"{{ {function} }}\n", (Linked(0, "0", places[0][0]),)
        )

    async def open_profile(
        self, path: str, report: Callable[[str], object], stop: asyncio.Event
    ) -> str | None:
        if path.endswith("empty"):
            raise LookupError(f"no profile in {path}")
        report("50%")
        return "report"

    async def panel(self, path: str, where: Position | str) -> Panel | None:
        for named, word in self.words(path, r"(?<=def )\w+"):
            if where == word or (not isinstance(where, str) and where in named):
                return Panel(path, word, named, "", ("", "decode"), "tpu:v9", trouble="no compiler")
        return None

    async def drawn_sweep(
        self, path: str, function: str, sizes: Sequence[str], figure: str
    ) -> DrawnSweep:
        if not sizes:
            return DrawnSweep("B=1..64", ("B", "D"))
        shape = DrawnShape("circle", {"cx": "1"}, f"{function}: {figure}")
        picture = Picture(function, 720, 400, (shape,))
        return DrawnSweep(
            "B=1..64", ("B", "D"), picture, ("B",), tuple((s,) for s in sizes), ("!",)
        )

    def sets(self, path: str, function: str) -> list[str]:
        if function == "nothing":
            raise LookupError("there is no function nothing")
        return ["", "decode", "long"]

    def choose_target(self, name: str) -> None:
        if name == "nowhere":
            raise LookupError("there is no target 'nowhere'")
        self.targets.append(name)

    async def offers(self, path: str) -> Offers:
        active = (self.targets or ["cpu"])[-1]

        def offer(name: str, group: Group, compiler: str = "") -> Offer:
            state: State = "needs" if compiler else "ready"
            return Offer(name, group, name, "", state, "detail", compiler, name == active)

        offers = (
            offer("cpu", "here"),
            *(offer(f"cuda:gpu{number}", "gpu", "cuda") for number in range(20)),
        )
        compiler = Compiler("cuda", "NVIDIA GPUs", 290, (), 0)
        return Offers(active, "", "0.12.0", offers, (compiler,))

    @property
    def measuring(self) -> FakeMeasurements:
        return self.measured

    @property
    def installer(self) -> FakeSession:
        return self

    async def plan(self, path: str, platform: str) -> InstallPlan:
        if platform != "cuda":
            raise LookupError(f"no compiler for {platform}")
        return InstallPlan(platform, "/py", "0.12.0", "pypi.example", "/compilers")

    async def install(self, plan: InstallPlan, report: Callable[[str], None]) -> str:
        report("installing: 12 MB on disk")
        if self.slow is not None:
            try:
                await self.slow.wait()
            except asyncio.CancelledError:
                self.cancelled.append(plan.platform)
                raise
        return f"Installed {plan.title}"

    async def decide(self, consent: Consent, answer: str | None) -> None:
        self.decided.append((consent, answer))

    def ask_again(self, folder: str | None = None) -> bool:
        self.asked_again.append(folder)
        return folder != "nothing"

    def choose_set(self, path: str, function: str, name: str) -> None:
        self.chosen[path, function] = name

    async def restart(self, root: str | None = None) -> None:
        self.restarted.append(root)

    def words(self, path: str, pattern: str) -> list[tuple[Range, str]]:
        lines = re.split("\r\n|\r|\n", self.texts.get(path, ""))
        return [
            (Range(Position(number, m.start()), Position(number, m.end())), m[0])
            for number, line in enumerate(lines)
            for m in re.finditer(pattern, line)
        ]
