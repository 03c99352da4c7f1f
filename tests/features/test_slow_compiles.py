"""JX430: how long a compile takes is reported, and shown; results on disk say it of real ones."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jaxsight.features.named_function import compiled_function
from jaxsight.figures import program_notes
from jaxsight.figures.figures import Figures, Places
from jaxsight.figures.summary import headline
from jaxsight.files import private
from jaxsight.queries.programs.disk_cache import DiskCache
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.rules.jx430_slow_compile import rule as jx430_slow_compile
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Violation
from jaxsight.session import Session
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.messages.compiling import (
    Compile,
    Compiled,
    Folding,
    Incomplete,
    Memory,
)
from jaxsight.wire.messages.replies import Lowered, LoweredEquation
from jaxsight.wire.program import Body, TracedProgram
from tests.quiet import QUIET
from tests.sessions import session_without_spare

KERNEL = Kernel("f", "fusion", "loop fusion", "output", ())


def compiled(seconds: float, *, complete: bool = True) -> Compiled:
    return Compiled(
        0, "cpu", "device", Graph("m", ()), Memory(temporaries=0), "", seconds, is_complete=complete
    )


def findings(
    slow: float | None, result: Compiled | None, folds: Folding | None = None
) -> list[Violation]:
    view = ProgramView(
        name="f",
        program=TracedProgram((), Body("", (), (), ()), (), False),
        folds=(),
        folding=folds,
        slow_seconds=slow,
        warnings=(),
        quote=lambda path: "",
        around=lambda _: (),
        target=parse("cuda:h100"),
        compiled=result,
    )
    return list(jx430_slow_compile.find(view))


def test_the_message_has_the_time() -> None:
    (found,) = findings(64.2, compiled(64.2))
    assert (found.message, found.at, found.notes) == ("compiles for h100 in 64 s", "", ())
    (found,) = findings(64.2, compiled(64.2, complete=False))
    assert found.message == "compiles for h100 in ≥ 64 s"
    (found,) = findings(120.0, None)
    assert found.message == "does not compile for h100 in 120 s"


def test_a_quick_compile_and_slow_folding_are_not_reported() -> None:
    assert findings(None, compiled(9.9)) == []
    assert findings(None, compiled(1.0, complete=False)) == []
    assert findings(64.2, compiled(64.2), Folding(64.0, 0.5)) == []


@pytest.mark.parametrize(
    "result",
    [
        compiled(4.0, complete=False),
        replace(compiled(0.4, complete=False), graph=Graph("m", (KERNEL,) * 200)),
    ],
    ids=["scheduled late", "many kernels"],
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
async def test_a_slow_program_is_shown_so_and_reported(tmp_path: Path) -> None:
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
    (found,) = (await second.report(path, kernels=True)).reported
    await second.aclose()
    assert isinstance(kernels, LocatedFigures)
    assert kernels.headline.endswith(" · cpu · compiled in 64 s")
    assert program_notes.compile_lines(kernels)[0].endswith(" · XLA 64 s")
    assert (found.code, found.message) == ("JX430", "compiles for cpu in 64 s")
