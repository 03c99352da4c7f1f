"""JX430: what makes a compile slow is searched by compiling changed programs.

No compile is slow here: stand-ins say how long a program took, and results on disk say it of real
ones.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jaxsight.compiler import folding
from jaxsight.events import Progress
from jaxsight.features.named_function import compiled_function
from jaxsight.figures import program_notes
from jaxsight.figures.figures import Figures, Places
from jaxsight.figures.summary import headline
from jaxsight.files import private
from jaxsight.queries.programs.disk_cache import DiskCache
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.queries.programs.slow_compiles import Search
from jaxsight.rules.jx430_slow_compile import rule as jx430_slow_compile
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Violation
from jaxsight.rules.wording import MOST
from jaxsight.session import Session
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.messages.compiling import (
    BARRIER,
    ROLLED,
    UNFOLDED,
    WITHOUT,
    Compile,
    Compiled,
    Folding,
    Incomplete,
    Memory,
    Saving,
    SlowCompile,
)
from jaxsight.wire.messages.replies import Lowered, LoweredChange, LoweredEquation
from jaxsight.wire.messages.requests import BEFORE
from jaxsight.wire.program import Body, TracedProgram
from jaxsight.workers.compilation.compilers import Trouble
from tests.quiet import QUIET
from tests.sessions import session_without_spare

COUNT = 23
"""Operations of the program that stands in for a slow one."""


KERNEL = Kernel("f", "fusion", "loop fusion", "output", ())


def compiled(seconds: float, *, complete: bool = True) -> Compiled:
    return Compiled(
        0, "cpu", "device", Graph("m", ()), Memory(temporaries=0), "", seconds, is_complete=complete
    )


class StandIn:
    """A program of `COUNT` operations that compiles in 40 s if it has the operation `slow`."""

    def __init__(self, slow: int = -1, *, rolls: bool = False, fails: str = "") -> None:
        self.slow, self.rolls, self.fails = slow, rolls, fails
        self.compiled: list[str] = []

    async def change(self, change: str, at: int) -> LoweredChange | None:
        if change == ROLLED and not self.rolls:
            return None
        return LoweredChange(0, f"{change} {at}", COUNT, str(at), 9 if change == ROLLED else 0)

    async def compile(self, request: Compile, deadline: float) -> Compiled | Trouble:
        self.compiled.append(request.program)
        if request == folding.without(Compile(0, "cpu", "whole")):
            return compiled(0.5)
        change, at = request.program.split()
        if change == self.fails:
            return Trouble("xla", "no such operation")
        is_fast = {
            "before": int(at) <= self.slow,
            "without": int(at) == self.slow,
            "barrier": int(at) == self.slow,
            "rolled": True,
        }[change]
        return compiled(0.25) if is_fast else Trouble("time", "", seconds=deadline)

    async def savings(self, *, may_fold: bool = False) -> list[Saving]:
        request = Compile(0, "cpu", "whole")
        search = Search(self.change, self.compile, request, 40.0, may_fold)
        return list(await search.savings())


@pytest.mark.parametrize("slow", range(COUNT))
async def test_the_operation_that_makes_a_program_slow_is_found(slow: int) -> None:
    program = StandIn(slow)
    assert await program.savings() == [
        Saving(WITHOUT, 0.25, str(slow)),
        Saving(BARRIER, 0.25, str(slow)),
    ]
    assert len(program.compiled) <= 8


async def test_a_loop_and_constant_folding_are_tried_first() -> None:
    program = StandIn(22, rolls=True)
    assert [saving.kind for saving in await program.savings(may_fold=True)] == [
        UNFOLDED,
        ROLLED,
        WITHOUT,
        BARRIER,
    ]
    assert program.compiled[:2] == ["whole", "rolled 0"]


@pytest.mark.parametrize("fails", ["before", "without"])
async def test_a_program_that_cannot_be_changed_has_no_savings(fails: str) -> None:
    assert await StandIn(7, fails=fails).savings() == []


async def test_a_search_without_an_answer_ends_with_its_time() -> None:
    program = StandIn(-1)
    assert await program.savings() == []
    assert len(program.compiled) == 6  # of 15 s each, as the limit is 10 s and a process starts


async def test_a_program_that_is_slow_by_its_length_has_no_operation_to_blame() -> None:
    class Long(StandIn):
        async def compile(self, request: Compile, deadline: float) -> Compiled | Trouble:
            self.compiled.append(request.program)
            change, at = request.program.split()
            return compiled(40.0 * (int(at) if change == BEFORE else COUNT) / COUNT)

    program = Long()
    assert await program.savings() == []
    assert len(program.compiled) <= 4
    assert not any(name.startswith(WITHOUT) for name in program.compiled)


def findings(
    slow: SlowCompile | None, result: Compiled | None, folds: Folding | None = None
) -> list[Violation]:
    view = ProgramView(
        name="f",
        program=TracedProgram((), Body("", (), (), ()), (), False),
        folds=(),
        folding=folds,
        slow=slow,
        warnings=(),
        quote=lambda path: {"3": "jnp.sum(x)", "4": "x.at[index + offset % 8].add(u)"}[path],
        around=lambda _: (),
        target=parse("cuda:h100"),
        compiled=result,
    )
    return list(jx430_slow_compile.find(view))


NOTE = "the compile times were measured on this machine"


def test_the_message_has_the_smallest_change_and_the_notes_all_others() -> None:
    savings = (
        Saving(ROLLED, 0.8, "1", 8),
        Saving(WITHOUT, 2.0, "3"),
        Saving(BARRIER, 1.9, "3"),
    )
    (found,) = findings(SlowCompile(64.2, savings), compiled(64.2))
    assert found.message == "compiles for h100 in 64 s; without `jnp.sum(x)` in 2.0 s"
    assert found.at == "3"
    assert found.help.startswith("pass its operands through `jax.lax.optimization_barrier`")
    assert found.notes == (
        "with `optimization_barrier` before `jnp.sum(x)` in 1.9 s",
        "with the loop of 8 copies rolled up in 0.8 s",
        NOTE,
    )


@pytest.mark.parametrize(
    ("saving", "words"),
    [
        (Saving(WITHOUT, 2.0, "4"), "without `x.at[index + offset % 8].ad…` in 2.0 s"),
        (Saving(BARRIER, 2.0, "3"), "with `optimization_barrier` before `jnp.sum(x)` in 2.0 s"),
        (Saving(ROLLED, 0.04, "3", 500), "with the loop of 500 copies rolled up in < 0.1 s"),
        (Saving(UNFOLDED, 12.1), "without constant folding in 12 s"),
    ],
    ids=lambda each: getattr(each, "kind", ""),
)
def test_each_change_has_its_words(saving: Saving, words: str) -> None:
    (found,) = findings(SlowCompile(64.2, (saving,)), compiled(64.2))
    assert found.message == f"compiles for h100 in 64 s; {words}"
    assert len(found.message) <= MOST
    assert found.notes == (NOTE,)


def test_without_a_measurement_there_is_only_the_time() -> None:
    (found,) = findings(SlowCompile(64.2), compiled(64.2))
    assert (found.message, found.at, found.notes) == ("compiles for h100 in 64 s", "", ())
    (found,) = findings(SlowCompile(64.2), compiled(64.2, complete=False))
    assert found.message == "compiles for h100 in ≥ 64 s"
    (found,) = findings(SlowCompile(120.0), None)
    assert found.message == "does not compile for h100 in 120 s"


def test_a_quick_compile_and_slow_folding_are_not_reported() -> None:
    assert findings(None, compiled(9.9)) == []
    assert findings(None, compiled(1.0, complete=False)) == []
    assert findings(SlowCompile(64.2), compiled(64.2), Folding(64.0, 0.5)) == []


@pytest.mark.parametrize(
    "result",
    [
        compiled(4.0, complete=False),
        replace(compiled(0.4, complete=False), graph=Graph("m", (KERNEL,) * 200)),
        replace(
            compiled(0.4, complete=False), graph=Graph("m", (replace(KERNEL, emitted=14_082),))
        ),
    ],
    ids=["scheduled late", "many kernels", "a large kernel"],
)
def test_what_may_take_long_is_compiled_completely(result: Compiled) -> None:
    with pytest.raises(Incomplete):
        findings(None, result)


CHAIN = '''\
import jax.numpy as jnp


def chain(x):
    """
    Example inputs:
        x: f32[64]
    """
    y = jnp.sin(x) + 1
    return jnp.cumsum(y)
'''


def slowed(seconds: float) -> int:
    """Let all stored programs have compiled for some time; return how many there are."""
    folder = private.cache_folder("compiled")
    assert folder is not None
    cache = DiskCache()
    names = [path.stem for path in folder.rglob("*.compiled")]
    for name in names:
        if (entry := cache.get(name)) is not None:
            cache.put(name, replace(entry, seconds=seconds))
    return len(names)


async def measured(session: Session) -> None:
    """Wait until changes of the program are compiled, as a client is told."""
    while True:
        event = await session.events.get()
        if isinstance(event, Progress) and "changes of chain" in event.detail:
            return


async def configured(folder: Path) -> Session:
    session = session_without_spare()
    settings = {**QUIET, "python": sys.executable, "target": "cpu"}
    session.configure([str(folder)], settings)
    return session


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            {3: 1200, 14: 300},
            ["line 4: 1,200 of 1,500 equations", "line 15: 300 of 1,500 equations"],
        ),
        (dict.fromkeys(range(20), 100), []),
        ({3: 999}, []),
    ],
    ids=["two lines", "even", "small"],
)
def test_a_large_trace_says_which_lines_make_it_large(
    made: dict[int, int], words: list[str]
) -> None:
    lines = [line + 1 for line, number in made.items() for _ in range(number)]

    class Lines(Places[int]):
        def of(self, path: str) -> int:
            return lines[int(path)]

        def lines(self, at: int) -> tuple[str, int, int]:
            return "", at, at

    equations = tuple(LoweredEquation(str(index), "add") for index in range(len(lines)))
    lowered = Lowered(0, "cpu", "", Compile(0, "cpu", ""), equations=equations, seconds=0.24)
    kernels = Figures(parse("cpu"), compiled(6.14), lowered, places=Lines())
    assert program_notes.compile_lines(kernels) == ["lower 0.2 s · XLA 6.1 s", *words]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (compiled(4.99), ""),
        (compiled(5.0), "compiled in 5.0 s"),
        (compiled(64.3), "compiled in 64 s"),
        (compiled(64.3, complete=False), "compiled in ≥ 64 s"),
    ],
)
def test_a_headline_has_the_time_of_a_long_compile(result: Compiled, words: str) -> None:
    assert headline(result, parse("cpu")).partition(" · cpu")[2].removeprefix(" · ") == words


@pytest.mark.slow
@pytest.mark.usefixtures("cold_cache")
async def test_a_slow_program_is_shown_so_and_reported_with_what_was_measured(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "chain.py")
    first = await configured(tmp_path)
    first.open(path, CHAIN)
    await compiled_function(first.engine, path, "chain", complete=True)
    findings = (await first.report(path, kernels=True)).reported
    await first.aclose()
    assert findings == []
    assert slowed(64.2)
    second = await configured(tmp_path)
    second.open(path, CHAIN)
    _, kernels = await compiled_function(second.engine, path, "chain", complete=True)
    asking = asyncio.ensure_future(second.report(path, kernels=True))
    measuring = asyncio.ensure_future(measured(second))
    # Where it takes less than a moment there is no progress, and nothing to interrupt.
    await asyncio.wait({asking, measuring}, return_when=asyncio.FIRST_COMPLETED)
    measuring.cancel()
    second.change(path, f"{CHAIN}# typed")
    (interrupted,) = (await asking).reported
    (found,) = (await second.report(path, kernels=True)).reported
    asked = second.engine.programs.compiles
    await second.aclose()
    assert isinstance(kernels, LocatedFigures)
    assert kernels.headline.endswith(" · cpu · compiled in 64 s")
    assert program_notes.compile_lines(kernels)[0].endswith(" · XLA 64 s")
    assert interrupted.message.startswith("compiles for cpu in 64 s")
    assert found.code == "JX430"
    assert found.message.startswith("compiles for cpu in 64 s; without `jnp.cumsum(y)` in ")
    assert found.range.start.line == 9
    assert found.notes[0].startswith("with `optimization_barrier` before `jnp.cumsum(y)` in ")
    assert asked > 0
    third = await configured(tmp_path)
    third.open(path, CHAIN)
    again = (await third.report(path, kernels=True)).reported
    asked = third.engine.programs.compiles
    await third.aclose()
    assert ([each.message for each in again], asked) == ([found.message], 0)
