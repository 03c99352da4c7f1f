"""The guardian: whatever ends, nothing that it guards stays behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

FAKE = Path(__file__).with_name("fake_tracer.py")

SERVER = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parents[2] / "server")!r})
from jaxsight.wire.messages.requests import NEW
from jaxsight.wire.messages.requests import Trace
from jaxsight.workers.supervisor import Tracers

async def main(function):
    tracers = Tracers(sys.executable, ".", command=[sys.executable, "-S", {str(FAKE)!r}])
    async def ask(function):
        await tracers.ask(Trace(NEW, "a.py", "a", "", (), function=function))
    await ask("leave a daemon")
    while len(tracers.pids) < 2:
        await asyncio.sleep(0.01)
    busy = asyncio.create_task(ask(function))
    await asyncio.sleep(0.2)
    print("ready", flush=True)
    await busy
    await asyncio.sleep(1000)

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture(params=["answer", "hang", "stage execute"])
def server(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process with tracers, idle or at work, and a daemon left behind by user code."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVER), request.param],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a parent's end is no signal")
def test_a_guardian_that_was_stopped_ends_with_the_server(server: subprocess.Popen[str]) -> None:
    below = psutil.Process(server.pid).children(recursive=True)
    for process in below:
        if "guardian.py" in " ".join(process.cmdline()):
            process.suspend()
    server.kill()
    server.wait()
    _, alive = psutil.wait_procs(below, timeout=20)
    assert alive == []


STARTING = f"""
import asyncio, signal, sys
from pathlib import Path
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which `nohup` ignores for all that it starts
sys.path.insert(0, {str(Path(__file__).parents[2] / "server")!r})
from jaxsight.workers import own_python
from jaxsight.workers.supervisor import Tracers

async def main(guardian):
    own_python.GUARDIAN = Path(guardian)
    Tracers(sys.executable, ".").start()
    await asyncio.sleep(1000)

asyncio.run(main(sys.argv[1]))
"""


def has_ended(process: psutil.Process) -> bool:
    """Also an orphan that the system's first process has not collected yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.skipif(sys.platform == "win32", reason="there are no guardians")
def test_a_guardian_that_was_stopped_before_it_ran_ends_with_the_server(tmp_path: Path) -> None:
    # Python starts, and nothing of the guardian's own is set up yet.
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(1000)\n")
    with subprocess.Popen(
        [sys.executable, "-c", STARTING, str(slow)], start_new_session=True
    ) as server:
        parent = psutil.Process(server.pid)
        deadline = time.monotonic() + 60
        below: list[psutil.Process] = []
        while not any("slow.py" in " ".join(process.cmdline()) for process in below):
            assert time.monotonic() < deadline
            time.sleep(0.01)
            below = parent.children()
        below[0].suspend()
        while below[0].status() != psutil.STATUS_STOPPED:
            time.sleep(0.01)
        server.kill()
        server.wait()
        _, left = psutil.wait_procs(below, timeout=20)
        alive = [each for each in left if not has_ended(each)]
        for process in alive:
            process.kill()
        assert alive == []


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_is_killed_leaves_no_process(
    server: subprocess.Popen[str], ending: signal.Signals
) -> None:
    below = psutil.Process(server.pid).children(recursive=True)
    server.send_signal(ending)
    server.wait()
    _, alive = psutil.wait_procs(below, timeout=120)
    assert alive == []


def test_a_guardian_that_is_killed_takes_its_tracer_along() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVER), "hang"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as server:
        assert server.stdout is not None
        server.stdout.readline()
        below = psutil.Process(server.pid).children(recursive=True)
        guardians = psutil.Process(server.pid).children()
        tracers = [child for guardian in guardians for child in guardian.children()]
        for guardian in guardians:
            os.kill(guardian.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(tracers, timeout=120)
        server.kill()
        for left in below:
            if left.is_running() and left.name() == "sleep":
                left.kill()
        assert [each for each in alive if each.name() != "sleep"] == []


def test_the_tracer_does_not_inherit_the_socket_to_the_server() -> None:
    ours, its = socket.socketpair()
    guardian = (
        Path(__file__).parents[2] / "server" / "jaxsight" / "workers" / "watchdog" / "guardian.py"
    )
    sees = f"import os; os.fstat({its.fileno()})"
    command = [sys.executable, "-I", "-S", str(guardian), str(its.fileno()), "free"]
    with (
        ours,
        subprocess.Popen(
            [*command, sys.executable, "-S", "-c", sees],
            pass_fds=(its.fileno(),),
            stderr=subprocess.PIPE,
        ) as process,
    ):
        its.close()
        assert process.stderr is not None
        assert b"Bad file descriptor" in process.stderr.read()
