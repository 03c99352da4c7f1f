"""Real compilers: this machine's CPU by this interpreter's jaxlib, here and through ssh."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import jaxlib
import pytest
import pytest_asyncio

from jaxsight.targets.target import parse
from jaxsight.wire.messages.compiling import Compile, Compiled
from jaxsight.workers.compilation.compilers import Compilers, Trouble
from jaxsight.workers.compilation.environments import CompilerEnvironment
from tests.compiler.programs import a_sum

HERE = CompilerEnvironment("here", sys.executable, jaxlib.__version__)
THERE = CompilerEnvironment("ssh", "", jaxlib.__version__)
SSH = """\
#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
while [ "$1" != -- ]; do shift; done
if [ "$2" = nowhere ]; then
    echo "ssh: Could not resolve hostname nowhere" >&2
    exit 255
fi
unset PYTHONPATH
cd /
exec sh -c "$3"
"""


def connections(asked: Path) -> int:
    return len(asked.read_text().splitlines())


@pytest_asyncio.fixture
async def compilers() -> AsyncIterator[Compilers]:
    made = Compilers(memory=4 * 2**30, deadline=60)
    yield made
    await made.aclose()


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for ssh that runs on this machine what it is to run on another one."""
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for name in ("ssh", "python3"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "asked"


async def test_the_cpu_is_compiled_for_by_the_users_own_jaxlib(compilers: Compilers) -> None:
    found = await compilers.compile(parse("cpu"), HERE, Compile(0, "cpu", a_sum()))
    assert isinstance(found, Compiled)
    assert (found.how, found.jaxlib) == ("device", jaxlib.__version__)
    assert (found.memory.arguments, found.memory.outputs) == (4096, 4)
    assert found.graph.kernel_count >= 1
    assert found.flops >= 1024
    assert found.hlo.startswith("HloModule")


async def test_a_program_that_is_none_is_refused(compilers: Compilers) -> None:
    found = await compilers.compile(parse("cpu"), HERE, Compile(0, "cpu", "bm90aGluZw=="))
    assert isinstance(found, Trouble)
    assert found.kind == "program"
    assert (
        f"jaxlib {jaxlib.__version__} cannot read the program (it supports StableHLO"
        in found.message
    )


async def test_a_gpu_without_its_plugin_is_refused(compilers: Compilers) -> None:
    target = parse("cuda:h100")
    found = await compilers.compile(target, HERE, Compile(0, target.name, a_sum()))
    assert isinstance(found, Trouble)
    assert found.kind == "target"


async def test_a_python_without_jax_says_so(compilers: Compilers, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys._base_executable} -I "$@"\n')  # type: ignore[attr-defined]
    bare.chmod(0o755)
    environment = CompilerEnvironment("here", str(bare), "")
    found = await compilers.compile(parse("cpu"), environment, Compile(0, "cpu", a_sum()))
    assert isinstance(found, Trouble)
    assert "cannot compile: ModuleNotFoundError: No module named 'jaxlib'" in found.message


async def test_another_machine_compiles_over_ssh(compilers: Compilers, ssh: Path) -> None:
    target = parse("ssh://lab/cpu")
    assert await compilers.jaxlib(target, THERE) == jaxlib.__version__
    found = await compilers.compile(target, THERE, Compile(0, target.name, a_sum()))
    assert isinstance(found, Compiled)
    assert found.target == "ssh://lab/cpu"
    assert found.graph.kernel_count >= 1
    assert connections(ssh) == 1  # one connection for both


async def test_a_machine_that_is_not_reached_is_told_in_sshs_words(
    compilers: Compilers, ssh: Path
) -> None:
    target = parse("ssh://nowhere/cpu")
    found = await compilers.compile(target, THERE, Compile(0, target.name, a_sum()))
    assert isinstance(found, Trouble)
    assert found.message == (
        "cannot reach nowhere over ssh (ssh: Could not resolve hostname nowhere)"
    )
    assert connections(ssh) == 1
