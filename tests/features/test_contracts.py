"""`Expect` lines: which example set and target they are checked with, and that a slow one holds
nothing else back.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.events import Refresh
from jaxsight.rules.finding import Finding
from jaxsight.session import Session
from jaxsight.source.text import Position
from jaxsight.trust import Policy, Trust
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

SOURCE = '''\
import jax.numpy as jnp


def f(x):
    """
    Example inputs:
        x: f32[64, 2]
    """
    return x * jnp.sum(x, axis=1, keepdims=True)
'''
INPUTS = "        x: f32[64, 2]\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = session_without_spare()
    root = tmp_path_factory.mktemp("project")
    session.configure([str(root)], {**QUIET, "python": sys.executable, "target": "cpu"})
    yield session
    await session.aclose()


async def reported(session: Session, path: Path, source: str) -> list[tuple[int, str, str]]:
    """Line (from 1), code and message of all findings of a file."""
    session.open(str(path), source)
    findings = (await session.report(str(path), kernels=True)).reported
    session.close(str(path))
    return [(one.range.start.line + 1, one.code, one.message) for one in findings]


def with_lines(*lines: str) -> str:
    """The source with more lines in the docstring, below its example inputs."""
    return SOURCE.replace(INPUTS, INPUTS + "".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    "lines",
    [
        ["    Expect: kernels <= 0"],
        ["        Expect: kernels <= 0"],
        ["    Expect:", "        kernels <= 0"],
        ["    Expect (cpu): kernels <= 0"],
    ],
    ids=["below the section", "in the section", "with lines of its own", "with a target"],
)
async def test_a_contract_without_a_target_applies_to_the_one_in_use(
    session: Session, tmp_path: Path, lines: list[str]
) -> None:
    findings = await reported(session, tmp_path / "f.py", with_lines(*lines))
    assert [(line, code) for line, code, _ in findings] == [(7 + len(lines), "JX501")]
    assert findings[0][2].startswith("expected kernels <= 0 on cpu, got ")


@pytest.mark.parametrize(
    "line", ["    Expect: the unexpected", "    Expect: x < y", "    Expect:"], ids=str
)
async def test_prose_is_no_contract(session: Session, tmp_path: Path, line: str) -> None:
    assert await reported(session, tmp_path / "f.py", with_lines(line)) == []


async def test_a_contract_is_checked_with_the_example_set_that_it_follows(
    session: Session, tmp_path: Path
) -> None:
    source = with_lines(
        "    Expect (cpu): temp <= 1 TiB",
        "    Example inputs (wide):",
        "        x: f32[64, 4]",
        "    Expect (cpu): kernels <= 0",
        "    Example inputs (wrong):",
        "        x = nothing",
        "    Expect (cpu): kernels <= 0",
    )
    path = tmp_path / "f.py"
    expected = [(11, "JX501"), (14, "JX501")]
    findings = await reported(session, path, source)
    assert [(line, code) for line, code, _ in findings] == expected
    assert findings[1][2] == "contract cannot be checked: tracing fails with these example inputs"
    session.open(str(path), source)
    session.choose_set(str(path), "f", "wide")
    again = (await session.report(str(path), kernels=True)).reported
    session.close(str(path))
    assert [(one.range.start.line + 1, one.code) for one in again] == expected


SHARDED = '''\
import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("model",), axis_types=(AxisType.Auto,))
columns, rows = NamedSharding(mesh, P(None, "model")), NamedSharding(mesh, P("model"))


def f(x, first, second):
    """
    Example inputs:
        x: f32[64, 256]
        first: f32[256, 512]
        second: f32[512, 256]
EXPECT
    """
    first = jax.lax.with_sharding_constraint(first, columns)
    second = jax.lax.with_sharding_constraint(second, rows)
    return x @ first @ second
'''


@pytest.mark.parametrize(
    ("line", "message", "notes"),
    [
        ("Expect (cpu:8): collectives <= 1, moved <= 64 KiB, all-gathers == 0", "", ()),
        ("Expect: all-reduces == 1, collective-permutes < 1", "", ()),
        (
            "Expect (cpu:8): collectives == 0",
            "expected collectives == 0 on cpu:8, got 1",
            ("all-reduce 64 KiB over model, inserted by the partitioner at line 18",),
        ),
        (
            "Expect: moved < 64 KiB",
            "expected moved < 64 KiB on 8 × cpu, got 64 KiB per device",
            ("all-reduce 64 KiB over model, inserted by the partitioner at line 18",),
        ),
        (
            "Expect (cpu:16): temp < 0 B",
            "expected temp < 0 B on 8 of cpu:16, got ",
            (),
        ),
        (
            "Expect (cpu:4): collectives <= 1",
            "contract cannot be checked: not compiled for cpu:4",
            ("it spans 8 devices, but cpu:4 has 4",),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_contracts_of_several_devices_are_about_each_of_them(
    session: Session, tmp_path: Path, line: str, message: str, notes: tuple[str, ...]
) -> None:
    path = str(tmp_path / "sharded.py")
    session.open(path, SHARDED.replace("EXPECT", f"    {line}"))
    findings = (await session.report(path, kernels=True)).reported
    session.close(path)
    broken = [finding for finding in findings if finding.code == "JX501"]
    assert [finding.message[: len(message)] for finding in broken] == [message] * bool(message)
    assert [finding.notes for finding in broken] == [notes] * bool(message)


async def test_a_note_has_the_line_of_the_current_text(session: Session, tmp_path: Path) -> None:
    path = str(tmp_path / "moved.py")
    source = SHARDED.replace("EXPECT", "    Expect (cpu:8): collectives == 0")
    session.open(path, source)
    noted = []
    for text in (source, f"# moved\n{source}"):
        session.change(path, text)
        findings = (await session.report(path, kernels=True)).reported
        noted += [finding.notes for finding in findings if finding.code == "JX501"]
    session.close(path)
    assert [note[0].rpartition(" ")[2] for note in noted] == ["18", "19"]


SSH = """\
#!{python}
import pathlib, sys, time
while not pathlib.Path({gate!r}).exists():
    time.sleep(0.05)
sys.exit("ssh: no route to host")
"""


async def test_a_contract_of_a_host_that_does_not_answer_holds_nothing_else_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH.format(python=sys.executable, gate=str(gate)))
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}{os.pathsep}{os.environ['PATH']}")
    source = with_lines(
        "    Expect (ssh://nowhere): kernels <= 3",
        "    Expect: kernels <= 0",
    ).replace(
        "keepdims=True)", "keepdims=True)\n\n\ndef g(x):\n    return f(x)  # jaxsight: ignore"
    )
    source += '''

def h(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x.nothing
'''
    path = str(tmp_path / "slow.py")
    session = session_without_spare(Trust(Policy.ALWAYS, allowed=["ssh://nowhere"]))
    session.configure([str(tmp_path)], {**QUIET, "python": sys.executable, "target": "cpu"})
    try:
        session.open(path, source)
        codes = [finding.code for finding in (await session.report(path)).reported]
        assert codes.count("JX400") == 1
        await finding_with(session, path, "expected kernels <= 0 on cpu")
        assert not gate.exists()
        gate.touch()
        warned = await finding_with(session, path, "nowhere")
        assert warned.range.start.line == 7
        assert warned.message.startswith("contract cannot be checked: not compiled for ")
        assert "nowhere" in warned.notes[0]
    finally:
        gate.touch()
        await session.aclose()


async def finding_with(session: Session, path: str, words: str) -> Finding:
    """The finding with some words, once a refresh has brought it."""
    async with asyncio.timeout(120):
        while True:
            for finding in (await session.report(path)).reported:
                if words in finding.message:
                    return finding
            while await session.events.get() != Refresh(path):
                pass


NESTED = '''\
import jax.numpy as jnp


def outer(x):
    """Return a function.
    """

    def inner(y):
        """
        Example inputs:
            y: f32[3]
        """
        z = y * 2
        return z

    return x + 1, inner
'''
USED = '"""\n    Example inputs:\n        x: f32[5]\n    """'


@pytest.mark.parametrize(
    ("docstring", "returned", "expected"),
    [
        ('"""Return a function.\n    """', "x + 1, inner", "add example inputs to `outer`"),
        (USED, "x + 1", "add example inputs to a function that calls `inner`"),
        (USED, "inner(x)", None),
    ],
    ids=["no example inputs around it", "not called", "called"],
)
async def test_example_inputs_of_a_nested_function_that_are_not_used_say_why(
    session: Session, tmp_path: Path, docstring: str, returned: str, expected: str | None
) -> None:
    source = NESTED.replace('"""Return a function.\n    """', docstring)
    source = source.replace("x + 1, inner", returned)
    path = str(tmp_path / "nested.py")
    session.open(path, source)
    findings = (await session.report(path)).reported
    session.close(path)
    if expected is None:
        assert findings == []
    else:
        line = source.splitlines().index("        Example inputs:")
        [finding] = findings
        assert (finding.range.start.line, finding.code) == (line, "JX911")
        assert finding.message == "unused example inputs of nested function `inner`"
        assert finding.help == expected


async def test_a_nested_function_is_seen_in_the_trace_of_the_function_around_it(
    session: Session, tmp_path: Path
) -> None:
    source = NESTED.replace('"""Return a function.\n    """', USED)
    source = source.replace("x + 1, inner", "inner(x)")
    path = str(tmp_path / "seen.py")
    session.open(path, source)
    hints = [hint.label for hint in await session.hints(path, wait=True)]
    line = source.splitlines().index("    def inner(y):")
    hover = await session.hover(path, Position(line, 10))
    session.close(path)
    assert hints == [": f32[5]"]
    assert hover is not None
    assert "inner(y: f32[5])" in hover.markdown
