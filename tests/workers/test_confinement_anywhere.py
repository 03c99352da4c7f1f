"""A confined program changes nothing outside of its process, on each system that confines."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from jaxsight.files.ownership import WRITABLE
from jaxsight.workers.confinement import start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is confined there")

EFFECTS = {
    "write": "open(HERE + '/kept.txt', 'a').write('x')",
    "create": "open(HERE + '/new', 'x')",
    "truncate": "os.truncate(HERE + '/kept.txt', 0)",
    "delete": "os.remove(HERE + '/kept.txt')",
    "rename": "os.rename(HERE + '/kept.txt', HERE + '/new')",
    "make a folder": "os.mkdir(HERE + '/new')",
    "delete a folder": "os.rmdir(HERE + '/empty')",
    "link": "os.link(HERE + '/kept.txt', HERE + '/new')",
    "symbolic link": "os.symlink(HERE + '/kept.txt', HERE + '/new')",
    "pipe": "os.mkfifo(HERE + '/new')",
    "mode": "os.chmod(HERE + '/kept.txt', 0o600)",
    "times": "os.utime(HERE + '/kept.txt', (1, 1))",
    "a shell's": "assert subprocess.call('echo x > ' + HERE + '/new', shell=True) == 0",
    "connect": "socket.create_connection(('127.0.0.1', TCP))",
    "send": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))",
    "signal": "os.kill(PID, signal.SIGKILL)",
}
PROGRAM = "import os, signal, socket, subprocess, sys\nHERE, *numbers = sys.argv[1:]\n"
PROGRAM += "TCP, UDP, PID = map(int, numbers)\n"
WORKS = {
    "own files": "import os; open('file', 'x').close(); os.remove('file')",
    "temporary files": "import tempfile; tempfile.NamedTemporaryFile().close()",
    "a process": "import subprocess; subprocess.run(['echo'], check=True)",
    "a pair of sockets": "import socket; ours, theirs = socket.socketpair(); ours.send(b'x')",
    "a lock": "import multiprocessing; multiprocessing.Lock().acquire()",
    "a compiled program": "import jax; jax.jit(lambda x: x @ x)(jax.numpy.ones((3, 3)))",
}


class Things:
    """A folder, two sockets and a process that a program may change."""

    def __init__(self, folder: Path) -> None:
        (folder / "empty").mkdir(parents=True)
        (folder / "kept.txt").write_text("text")
        self.folder = folder
        self.process = subprocess.Popen(["sleep", "3600"])
        self.connected, self.sent = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        for each in (self.connected, self.sent):
            each.bind(("127.0.0.1", 0))
            each.setblocking(False)
        self.connected.listen()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connected.close()
        self.sent.close()

    @property
    def arguments(self) -> list[str]:
        ports = [each.getsockname()[1] for each in (self.connected, self.sent)]
        return [str(self.folder), *map(str, (*ports, self.process.pid))]

    def state(self) -> Mapping[str, object]:
        """Return what there is, by names; what arrived at a socket counts once."""
        state: dict[str, object] = {"process": self.process.poll()}
        for path in [self.folder, *self.folder.iterdir()]:
            about = path.lstat()
            seen = (about.st_mode, about.st_size, about.st_mtime_ns, about.st_nlink)
            state[str(path.relative_to(self.folder))] = seen
        for name, receive in (("connect", self._accepted), ("send", self._received)):
            try:
                receive()
            except BlockingIOError:
                continue
            state[name] = True
        return state

    def _accepted(self) -> None:
        self.connected.accept()[0].close()

    def _received(self) -> None:
        self.sent.recv(10)


@pytest.fixture
def things(tmp_path: Path) -> Iterator[Things]:
    made = Things(tmp_path / "outside")
    yield made
    made.close()


def ended(program: str, launcher: Sequence[str], arguments: Sequence[str], folder: Path) -> int:
    folder.mkdir()
    command = [*launcher, sys.executable, "-c", program, *arguments]
    writable = {**os.environ, "TMPDIR": str(folder), WRITABLE: str(folder)}
    environment = start.variables(writable)
    # A process that was killed has ended once its parent has waited for it.
    return subprocess.run(command, check=False, cwd=folder, env=environment).returncode


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_happens_only_where_nothing_confines(
    effect: str, things: Things, tmp_path: Path
) -> None:
    program, before = PROGRAM + EFFECTS[effect], things.state()
    assert ended(program, start.confined([]), things.arguments, tmp_path / "confined") != 0
    assert things.state() == before
    assert ended(program, [], things.arguments, tmp_path / "free") == 0
    if effect == "signal":
        things.process.wait()
    assert things.state() != before


@pytest.mark.parametrize("what", WORKS)
def test_what_stays_inside_works(what: str, tmp_path: Path) -> None:
    assert ended(WORKS[what], start.confined([]), [], tmp_path / "confined") == 0
