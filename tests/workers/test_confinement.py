"""A confined program changes nothing outside of its process, by whatever system call it tries."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from jaxsight.files.ownership import WRITABLE
from jaxsight.workers.confinement import seccomp, start
from tests.workers.outside import Outside

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="calls of Linux")

ABIS = (1, 3, 7)
"""Versions of Landlock: the first one; one without the network; one with all that is used here."""

FILES = {
    "write": "c.open(kept, O_WRONLY | O_TRUNC)",
    "create": "c.creat(new, 0o644)",
    "truncate": "c.truncate(kept, 0)",
    "truncate read": "c.open(kept, O_RDONLY | O_TRUNC)",
    "unlink": "c.unlink(kept)",
    "rename": "c.rename(kept, new)",
    "exchange": "c.renameat2(-100, kept, -100, inner, 2)",
    "mkdir": "c.mkdir(new, 0o755)",
    "rmdir": "c.rmdir(empty)",
    "link": "c.link(kept, new)",
    "symlink": "c.symlink(kept, new)",
    "mkfifo": "c.mkfifo(new, 0o644)",
    "mknod": "c.mknod(new, 0o100644, 0)",
    "bind": "socket.socket(socket.AF_UNIX).bind(new)",
    "chmod": "c.chmod(kept, 0o600)",
    "fchmod": "c.fchmod(c.open(kept, O_RDONLY), 0o600)",
    "fchmodat": "c.fchmodat(-100, kept, 0o600, 0)",
    "chown": "c.chown(kept, os.getuid(), os.getgid())",
    "fchown": "c.fchown(c.open(kept, O_RDONLY), os.getuid(), os.getgid())",
    "lchown": "c.lchown(kept, os.getuid(), os.getgid())",
    "fchownat": "c.fchownat(-100, kept, os.getuid(), os.getgid(), 0)",
    "utime": "c.utime(kept, None)",
    "utimes": "c.utimes(kept, None)",
    "utimensat": "c.utimensat(-100, kept, None, 0)",
    "setxattr": "c.setxattr(kept, b'user.new', b'x', 1, 0)",
    "lsetxattr": "c.lsetxattr(kept, b'user.new', b'x', 1, 0)",
    "fsetxattr": "c.fsetxattr(c.open(kept, O_RDONLY), b'user.new', b'x', 1, 0)",
    "removexattr": "c.removexattr(kept, b'user.kept')",
    "lremovexattr": "c.lremovexattr(kept, b'user.kept')",
    "fremovexattr": "c.fremovexattr(c.open(kept, O_RDONLY), b'user.kept')",
    "inode flags": "c.ioctl(c.open(kept, O_RDONLY), 0x40086602, ctypes.byref(ctypes.c_int(0x40)))",
}
PROCESSES = {
    "kill": "c.kill(PID, 19)",
    "kill a group": "c.kill(-PID, 19)",
    "tgkill": "c.tgkill(PID, PID, 19)",
    "queue a signal": f"""
c.syscall({seccomp.numbers()["rt_sigqueueinfo"]}, PID, 19, (ctypes.c_int * 32)(19, 0, -1))
""",
    "signal a descriptor": "signal.pidfd_send_signal(os.pidfd_open(PID), 19)",
    "own a pipe": """
ours, theirs = socket.socketpair()
fcntl.fcntl(ours, 8, PID)
fcntl.fcntl(ours, 10, 19)
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
theirs.send(b'x')
""",
    "own a socket": """
ours, theirs = socket.socketpair()
fcntl.ioctl(ours, 0x8901, PID.to_bytes(4, 'little'))
fcntl.fcntl(ours, 10, 19)
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
theirs.send(b'x')
""",
    "priority": "c.setpriority(0, PID, 19)",
    "scheduler": "c.sched_setscheduler(PID, 3, ctypes.byref(ctypes.c_int(0)))",
    "priority of input": f"c.syscall({seccomp.numbers()['ioprio_set']}, 1, PID, 3 << 13)",
    "limits": "c.prlimit64(PID, 7, ctypes.byref((ctypes.c_ulong * 2)(100, 100)), None)",
}
SOCKETS = {
    "connect": "socket.create_connection(('127.0.0.1', TCP))",
    "send": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))",
    "unix": "socket.socket(socket.AF_UNIX).connect(UNIX)",
    "unix datagram": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', DATAGRAMS)",
    "pair": "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', DATAGRAMS)",
    "terminal": "fcntl.ioctl(c.open(TERMINAL.encode(), O_RDONLY), 0x5414, b'x' * 8)",
}
EFFECTS = FILES | PROCESSES | SOCKETS

PROGRAM = """
import ctypes, fcntl, json, os, signal, socket, sys
from os import O_RDONLY, O_TRUNC, O_WRONLY
c = ctypes.CDLL(None)
for effect, names in json.load(sys.stdin):
    for name, path in [('kept', 'kept.txt'), ('inner', 'kept/inner.txt'), ('empty', 'empty')]:
        names[name] = f"{names['HERE']}/{path}".encode()
    try:
        exec(effect, {**globals(), **names, 'new': f"{names['HERE']}/new".encode()})
    except OSError:
        pass
"""


def run(abi: int, program: str, *arguments: str, folder: Path, stdin: str = "") -> str:
    """Return what a confined program prints, which must succeed.

    Args:
        abi: the version of Landlock that the kernel may have; 0 confines nothing.
        program: Python.
        arguments: of the program.
        folder: which it may write, also as its folder of temporary files.
        stdin: what it reads.
    """
    command: Sequence[str] = [sys.executable, "-c", program, *arguments]
    if abi:
        launcher = start.confined([])
        command = [*launcher[:-1], str(abi), *command]
    ended = subprocess.run(
        command,
        cwd=folder,
        env=start.variables({**os.environ, "TMPDIR": str(folder), WRITABLE: str(folder)}),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], list[str]]:
    """What each effect changed, under each version of Landlock; 0 is none."""
    with ExitStack() as things:
        made = {}
        for abi in (*ABIS, 0):
            folder = tmp_path_factory.mktemp(f"abi{abi}")
            made |= {
                (abi, name): things.enter_context(Outside(folder / str(number)))
                for number, name in enumerate(EFFECTS)
            }
            own = tmp_path_factory.mktemp("own")
            tried = [(EFFECTS[name], made[abi, name].names) for name in EFFECTS]
            run(abi, PROGRAM, folder=own, stdin=json.dumps(tried))
        # Signals take a moment: the last ones have arrived when those of nobody confined have.
        vain = [name for name in EFFECTS if not made[0, name].is_changed_soon()]
        assert vain == []
        return {key: outside.changes() for key, outside in made.items() if key[0]}


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("abi", ABIS)
def test_an_effect_does_not_happen(
    abi: int, effect: str, outcomes: dict[tuple[int, str], list[str]]
) -> None:
    assert outcomes[abi, effect] == []


BY_A_USER = """
import os, sys
from jaxsight.workers.confinement import landlock, launch, seccomp
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
abi, inside, outside = sys.argv[1:]
open(outside, "a").close()
launch.confine(int(abi))
open(inside, "a").close()
try:
    open(outside, "a").close()
except PermissionError:
    print("refused")
"""
"""Confines itself as somebody who is no administrator."""


@pytest.mark.parametrize("abi", ABIS)
def test_a_process_of_an_ordinary_user_is_confined(abi: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        own, other = Path(folder) / "own", Path(folder) / "other"
        for each in (own, other):
            each.mkdir()
            each.chmod(0o777)
        Path(folder).chmod(0o755)
        names = str(own / "a"), str(other / "b")
        ended = subprocess.run(
            [sys.executable, "-c", BY_A_USER, str(abi), *names],
            env={**os.environ, WRITABLE: str(own)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (ended.stdout, ended.stderr) == ("refused\n", "")


CALLS = """
import ctypes, errno, json, sys
c = ctypes.CDLL(None, use_errno=True)
seen = {}
for name, number in json.load(sys.stdin).items():
    arguments = [ctypes.c_long(-1)] * 6
    if name in ("open", "openat"):
        arguments[1 if name == "open" else 2] = ctypes.c_long(0o1000)  # O_RDONLY | O_TRUNC
    if name == "ioctl":
        arguments[1] = ctypes.c_long(0x40086602)  # FS_IOC_SETFLAGS
    if name == "fcntl":
        arguments[1] = ctypes.c_long(8)  # F_SETOWN
    c.syscall(ctypes.c_long(number), *arguments)
    seen[name] = errno.errorcode[ctypes.get_errno()]
print(json.dumps(seen))
"""
"""Does nothing where it is not refused: no file, address or process is -1."""

TRUNCATING = {"truncate", "openat2", "open", "openat"}
SIGNALLING = {"fcntl", "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"}
SIGNALLING |= {"pidfd_send_signal"}
LEFT_TO_LANDLOCK = {1: set(), 3: TRUNCATING, 7: TRUNCATING | SIGNALLING}
"""Calls that newer versions refuse by what they would change."""


@pytest.mark.parametrize("abi", ABIS)
def test_each_call_of_the_tables_is_refused(abi: int, tmp_path: Path) -> None:
    tried = {
        name: number
        for name, number in seccomp.numbers().items()
        if name not in LEFT_TO_LANDLOCK[abi] | {"creat"}  # which Landlock always refuses
    }
    seen = json.loads(run(abi, CALLS, folder=tmp_path, stdin=json.dumps(tried)))
    refused = {"EPERM", "EACCES", "ENOSYS", "ENOTSUP"}
    assert {name: error for name, error in seen.items() if error not in refused} == {}


WORKS = {
    "a lock": "import multiprocessing\nwith multiprocessing.Lock(): pass",
    "shared memory": """
from multiprocessing import shared_memory
memory = shared_memory.SharedMemory(create=True, size=16)
memory.buf[0] = 1
memory.close()
memory.unlink()
""",
    "a process": "import subprocess\nassert subprocess.check_output(['echo', 'x']) == b'x\\n'",
    "a shell": "import os\nassert os.system('echo x > file') == 0",
    "temporary files": """
import tempfile
with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as folder:
    file.write(b'x')
    file.truncate()
""",
    "a pair of sockets": """
import socket
ours, theirs = socket.socketpair()
ours.settimeout(60)
theirs.sendall(b'x')
assert ours.recv(1) == b'x'
""",
    "an event loop": """
import asyncio
async def main():
    process = await asyncio.create_subprocess_exec('echo', 'x', stdout=asyncio.subprocess.PIPE)
    await asyncio.to_thread(int)
    return await process.communicate()
assert asyncio.run(main()) == (b'x\\n', None)
""",
    "a pool of forks": """
import multiprocessing
pool = multiprocessing.get_context('fork').Pool(2)
assert pool.map(abs, [-1, 2]) == [1, 2]
pool.close()
pool.join()
""",
    "a pool of new processes": """
import multiprocessing
pool = multiprocessing.get_context('spawn').Pool(2)
assert pool.map(abs, [-1, 2]) == [1, 2]
pool.close()
pool.join()
""",
    "a pool of executors": """
import concurrent.futures, multiprocessing
how = multiprocessing.get_context('spawn')
with concurrent.futures.ProcessPoolExecutor(2, how) as pool:
    assert [*pool.map(abs, [-1, 2])] == [1, 2]
""",
    "a thread": """
import threading
thread = threading.Thread(target=int)
thread.start()
thread.join()
""",
    "own scheduling": """
import os
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.nice(1)
""",
    "own limits": """
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.prlimit(0, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
""",
    "a database": """
import sqlite3
with sqlite3.connect('file.db') as base:
    base.execute('create table t (x)')
""",
    "a compiled program": """
import jax
import jax.numpy as jnp
assert jax.jit(lambda x: jnp.sin(x) @ x)(jnp.zeros((3, 3))).shape == (3, 3)
""",
    "a terminal's size": "import shutil\nassert shutil.get_terminal_size().columns",
    "a signal to itself": """
import os, signal
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
os.kill(os.getpid(), signal.SIGUSR1)
assert seen == [1]
""",
}


@pytest.mark.parametrize("abi", ABIS)
@pytest.mark.parametrize("what", WORKS)
def test_what_stays_inside_works(what: str, abi: int, tmp_path: Path) -> None:
    # A file, as new processes of `multiprocessing` import the program of their parent.
    program = WORKS[what].strip().replace("\n", "\n    ")
    (tmp_path / "program.py").write_text(f"if __name__ == '__main__':\n    {program}\n")
    run(abi, "import runpy; runpy.run_path('program.py', run_name='__main__')", folder=tmp_path)


def test_caches_are_not_copied_through_links_that_were_made_in_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    given = tmp_path / "home" / ".cache" / "huggingface" / "hub"
    given.mkdir(parents=True)
    (given / "file").write_text("text")
    outside = tmp_path / "outside"
    outside.mkdir()
    environment = {"HOME": str(tmp_path / "home")}
    made = start.variables(environment, "project")
    copy = Path(made["HF_HOME"])
    shutil.rmtree(copy / "hub")
    (copy / "hub").symlink_to(outside)
    start.variables(environment, "project")
    shutil.rmtree(copy)
    copy.symlink_to(outside)
    start.variables(environment, "project")
    assert [*outside.iterdir()] == []
